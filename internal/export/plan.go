package export

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// plan describes the content of an export.
type plan struct {
	window  roomsensor.Window
	open    bool // whether the window ends now
	ongoing bool // whether its assignment has not ended
	team    []roomsensor.NamedDevice
	devices []uuid.UUID // selected; ascending, without duplicates
}

func (p *plan) empty() bool { return len(p.devices) == 0 || p.window.Empty() }

// plan resolves what a request selects, in the order of decision 22: device, assignment. The caller checks the size.
func (e *Exporter) plan(ctx context.Context, r *Request) (*plan, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	team, err := e.backend.DeviceNames(ctx, r.TeamID)
	if err != nil {
		return nil, err
	}
	p := &plan{window: r.Times.Window, team: team}
	if p.devices, err = r.Devices.From(team); err != nil {
		return nil, err
	}
	if len(r.Devices.Tags) > 0 {
		if err := e.narrowToTags(ctx, r, p); err != nil {
			return nil, err
		}
	}
	if r.Devices.ExternalRef != nil {
		if err := e.narrowToExternalRef(ctx, r, p); err != nil {
			return nil, err
		}
	}
	if r.Times.Assignment != nil {
		if err := e.narrowToAssignment(ctx, r, p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// narrowToTags leaves out the devices that do not have all tags of metadata.<key> (A0.1).
func (e *Exporter) narrowToTags(ctx context.Context, r *Request, p *plan) error {
	tagged, err := e.backend.TaggedDevices(ctx, r.TeamID, r.Devices.Tags)
	if err != nil {
		return err
	}
	p.devices = slices.DeleteFunc(p.devices, func(id uuid.UUID) bool {
		_, ok := slices.BinarySearchFunc(tagged, id, roomsensor.CompareIDs)
		return !ok
	})
	return nil
}

// narrowToAssignment limits the plan to the device and the window of the assignment (spec 4, readings.csv, rule 1).
func (e *Exporter) narrowToAssignment(ctx context.Context, r *Request, p *plan) error {
	assignment, err := e.backend.Assignment(ctx, r.TeamID, *r.Times.Assignment)
	if errors.Is(err, roomsensor.ErrNotFound) {
		return roomsensor.NewError(roomsensor.CodeAssignmentNotFound, httpedge.AssignmentParameter,
			"No device of your team has an assignment with this id. GET /devices/{device_id}/assignments lists them.")
	}
	if err != nil {
		return err
	}
	p.window = r.Times.Within(&assignment)
	p.ongoing = assignment.EndedAt == nil
	p.open = r.Times.Request.IsZero() && p.ongoing
	other := func(id uuid.UUID) bool { return id != assignment.DeviceID }
	p.devices = slices.DeleteFunc(p.devices, other)
	return nil
}

// narrowToExternalRef limits the plan to the devices of the assignments with an external_ref, and to the time from the
// first to the last of them if no parameter of time was sent (A18.2). The rows of each assignment are within its own
// window, which the store checks.
func (e *Exporter) narrowToExternalRef(ctx context.Context, r *Request, p *plan) error {
	w := r.Times.Window
	if r.Times.Request.IsZero() {
		w = roomsensor.Window{To: roomsensor.Forever}
	}
	held, err := e.backend.TeamAssignments(ctx, r.TeamID, roomsensor.TeamAssignmentQuery{
		AssignmentQuery: roomsensor.AssignmentQuery{Limit: roomsensor.MaxExportAssignments + 1},
		Window:          w, ExternalRef: r.Devices.ExternalRef,
	})
	if err != nil {
		return err
	}
	if len(held) > roomsensor.MaxExportAssignments {
		if r.Times.Request.IsZero() { // Their list has the newest first.
			w.From, w.To = held[len(held)-1].StartedAt, held[0].StartedAt
		}
		return tooManyAssignments(w)
	}
	devices := make(map[uuid.UUID]bool, len(held))
	var end time.Time
	for i := range held {
		devices[held[i].DeviceID] = true
		p.ongoing = p.ongoing || held[i].EndedAt == nil
		end = roomsensor.Later(end, held[i].Window().To)
	}
	p.devices = slices.DeleteFunc(p.devices, func(id uuid.UUID) bool { return !devices[id] })
	if r.Times.Request.IsZero() && len(held) > 0 {
		p.window, p.open = roomsensor.Window{From: held[len(held)-1].StartedAt, To: end}, p.ongoing
	}
	return nil
}

// checkDeviceCount returns csv_too_large if an export selects too many devices.
func checkDeviceCount(n int) error {
	if n > roomsensor.MaxExportDevices {
		return roomsensor.NewError(roomsensor.CodeCSVTooLarge, "", fmt.Sprintf(
			"An export takes at most %d devices, and %d are selected. Name fewer in devices.", roomsensor.MaxExportDevices, n))
	}
	return nil
}

// fileName returns the name of the file: <data>_<from>_<to>.<extension>. It contains the resolved window, truncated to
// seconds; an open end is now (decision 32).
func (p *plan) fileName(data, extension string, now time.Time) string {
	const format = "20060102T150405Z"
	from, to := p.window.From, p.window.To
	if p.open {
		to = now
	}
	if to.Before(from) {
		to = from
	}
	if earliest := time.Date(0, time.January, 1, 0, 0, 0, 0, time.UTC); from.Before(earliest) {
		from = earliest // A year before 0 cannot be printed.
	}
	return fmt.Sprintf("%s_%s_%s.%s", data, from.UTC().Format(format), to.UTC().Format(format), extension)
}
