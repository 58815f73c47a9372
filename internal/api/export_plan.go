package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

const (
	devicesParameter = "devices"
	metricsParameter = "metrics"

	// maxNamedDevices is the limit of ids in the parameter devices (decision 31).
	maxNamedDevices = 1000
)

// exportRequest has the parameters that all exports share: what they select in time, and of which devices.
type exportRequest struct {
	timeRange
	named []uuid.UUID       // the ids in the parameter devices, as sent
	all   bool              // whether devices was not sent
	tags  map[string]string // the parameters metadata.<key>
}

// readDevices reads the parameters that select devices. Without them all devices are selected.
func (r *exportRequest) readDevices(q httpedge.Query) error {
	r.tags = q.Tags()
	text := q.Get(devicesParameter)
	if text == nil {
		r.all = true
		return nil
	}
	ids := strings.Split(*text, ",")
	if len(ids) > maxNamedDevices {
		return roomsensor.Invalid(devicesParameter, fmt.Sprintf(
			"devices has %d ids; at most %d are allowed.", len(ids), maxNamedDevices))
	}
	for _, text := range ids {
		id, err := parseID(devicesParameter, text)
		if err != nil {
			return roomsensor.Invalid(devicesParameter,
				"devices must be a list of device_ids separated by commas, each a UUID of 36 characters.")
		}
		r.named = append(r.named, id)
	}
	return nil
}

// exportPlan describes the content of an export.
type exportPlan struct {
	window  roomsensor.Window
	open    bool // whether the window ends now
	ongoing bool // whether its assignment has not ended
	team    []roomsensor.NamedDevice
	devices []uuid.UUID // selected; ascending, without duplicates
}

func (p *exportPlan) empty() bool { return len(p.devices) == 0 || p.window.Empty() }

// planExport resolves the parameters, in the order of decision 22: device, assignment. It has the deadline of other
// requests. The caller checks the size.
func (e *exporter) planExport(ctx context.Context, c *call, asked *exportRequest) (*exportPlan, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	team, err := e.backend.DeviceNames(ctx, c.key.TeamID)
	if err != nil {
		return nil, err
	}
	plan := &exportPlan{window: asked.window, team: team}
	if plan.devices, err = asked.selectFrom(team); err != nil {
		return nil, err
	}
	if len(asked.tags) > 0 {
		if err := e.narrowToTags(ctx, c, asked, plan); err != nil {
			return nil, err
		}
	}
	if asked.assignment != nil {
		if err := e.narrowToAssignment(ctx, c, asked, plan); err != nil {
			return nil, err
		}
	}
	return plan, nil
}

// selectFrom returns the selected devices, ascending and without duplicates. An id that is not a device of the team is
// device_not_found (decision 31).
func (r *exportRequest) selectFrom(team []roomsensor.NamedDevice) ([]uuid.UUID, error) {
	known := make(map[uuid.UUID]bool, len(team))
	selected := make([]uuid.UUID, 0, len(team))
	for _, d := range team {
		known[d.ID] = true
		if r.all {
			selected = append(selected, d.ID)
		}
	}
	for i, id := range r.named {
		if !known[id] {
			return nil, roomsensor.NewError(roomsensor.CodeDeviceNotFound, devicesParameter,
				fmt.Sprintf("Number %d of the ids in devices is not a device of your team. GET /devices lists the devices.", i+1))
		}
		selected = append(selected, id)
	}
	slices.SortFunc(selected, compareIDs)
	return slices.Compact(selected), nil
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

// narrowToTags leaves out the devices that do not have all tags of metadata.<key> (A0.1).
func (e *exporter) narrowToTags(ctx context.Context, c *call, asked *exportRequest, plan *exportPlan) error {
	tagged, err := e.backend.TaggedDevices(ctx, c.key.TeamID, asked.tags)
	if err != nil {
		return err
	}
	plan.devices = slices.DeleteFunc(plan.devices, func(id uuid.UUID) bool {
		_, ok := slices.BinarySearchFunc(tagged, id, compareIDs)
		return !ok
	})
	return nil
}

// narrowToAssignment limits the plan to the device and the window of the assignment (spec 4, readings.csv, rule 1).
func (e *exporter) narrowToAssignment(ctx context.Context, c *call, asked *exportRequest, plan *exportPlan) error {
	assignment, err := e.backend.Assignment(ctx, c.key.TeamID, *asked.assignment)
	if errors.Is(err, roomsensor.ErrNotFound) {
		return roomsensor.NewError(roomsensor.CodeAssignmentNotFound, assignmentParameter,
			"No device of your team has an assignment with this id. GET /devices/{device_id}/assignments lists them.")
	}
	if err != nil {
		return err
	}
	plan.window = asked.within(&assignment)
	plan.ongoing = assignment.EndedAt == nil
	plan.open = asked.request.IsZero() && plan.ongoing
	other := func(id uuid.UUID) bool { return id != assignment.DeviceID }
	plan.devices = slices.DeleteFunc(plan.devices, other)
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
func (p *exportPlan) fileName(data, extension string, now time.Time) string {
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
