package api

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

const (
	devicesParameter = "devices"
	shapeParameter   = "shape"

	// maxNamedDevices is the most ids that devices may hold (decision 31).
	maxNamedDevices = 1000
	// maxWideDevices is the most devices of the wide shape (decision 29).
	maxWideDevices = 1000
)

// exportRequest is what the parameters of an export say.
type exportRequest struct {
	span
	named []uuid.UUID // the ids in devices, as sent
	all   bool        // devices was not sent
	wide  bool
}

// exportPlan is what an export will hold.
type exportPlan struct {
	window  roomsensor.Window
	open    bool // the window has no end yet
	team    []roomsensor.NamedDevice
	devices []uuid.UUID // selected, each once, ascending
	wide    bool
}

func (p *exportPlan) empty() bool { return len(p.devices) == 0 || p.window.Empty() }

// planExport reads the parameters and resolves them, in the order of decision
// 22: each parameter by its own rule, device, assignment, size.
func (s *server) planExport(c *call) (*exportPlan, error) {
	asked, err := s.readExportRequest(c)
	if err != nil {
		return nil, err
	}
	team, err := s.backend.DeviceNames(c.ctx(), c.key.TeamID)
	if err != nil {
		return nil, err
	}
	plan := &exportPlan{window: asked.window, team: team, wide: asked.wide}
	if plan.devices, err = asked.selectFrom(team); err != nil {
		return nil, err
	}
	if asked.assignment != nil {
		if err := s.narrowToAssignment(c, asked, plan); err != nil {
			return nil, err
		}
	}
	if n := len(plan.devices); plan.wide && n > maxWideDevices {
		return nil, roomsensor.NewError(roomsensor.CodeCSVTooLarge, "", fmt.Sprintf(
			"The wide shape takes at most %d devices, and %d are selected. Name fewer in devices, or ask for shape=long.",
			maxWideDevices, n))
	}
	return plan, nil
}

func (s *server) readExportRequest(c *call) (*exportRequest, error) {
	q, err := c.query(fromParameter, toParameter, lastParameter, assignmentParameter,
		devicesParameter, shapeParameter, keyParameter)
	if err != nil {
		return nil, err
	}
	asked := &exportRequest{}
	if asked.span, err = s.readSpan(q); err != nil {
		return nil, err
	}
	if err := asked.readDevices(q.get(devicesParameter)); err != nil {
		return nil, err
	}
	return asked, asked.readShape(q.get(shapeParameter))
}

// readDevices reads the comma-separated ids; nil selects every device.
func (r *exportRequest) readDevices(text *string) error {
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
				"devices must be device_ids with commas between them, each a uuid of 36 characters.")
		}
		r.named = append(r.named, id)
	}
	return nil
}

func (r *exportRequest) readShape(text *string) error {
	switch {
	case text == nil, *text == "long":
	case *text == "wide":
		r.wide = true
	default:
		return roomsensor.Invalid(shapeParameter, "shape must be long or wide.")
	}
	return nil
}

// selectFrom is the selected devices, each once; one that is not the team's is
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
	for _, id := range r.named {
		if !known[id] {
			return nil, roomsensor.NewError(roomsensor.CodeDeviceNotFound, devicesParameter,
				"An id in devices is not of a device of your team. GET /devices lists them.")
		}
		selected = append(selected, id)
	}
	slices.SortFunc(selected, func(a, b uuid.UUID) int { return cmp.Compare(string(a[:]), string(b[:])) })
	return slices.Compact(selected), nil
}

// narrowToAssignment forces the devices to the assignment's, and the window
// into it (spec 4, readings.csv, rule 1).
func (s *server) narrowToAssignment(c *call, asked *exportRequest, plan *exportPlan) error {
	assignment, err := s.backend.Assignment(c.ctx(), c.key.TeamID, *asked.assignment)
	if errors.Is(err, roomsensor.ErrNotFound) {
		return roomsensor.NewError(roomsensor.CodeAssignmentNotFound, assignmentParameter,
			"No device of your team has an assignment of this id. GET /devices/{device_id}/assignments lists them.")
	}
	if err != nil {
		return err
	}
	plan.window = asked.in(&assignment)
	plan.open = asked.request.IsZero() && assignment.EndedAt == nil
	other := func(id uuid.UUID) bool { return id != assignment.DeviceID }
	plan.devices = slices.DeleteFunc(plan.devices, other)
	return nil
}

// fileName names the resolved window, cut to the second; an open end is now
// (decision 32).
func (p *exportPlan) fileName(now time.Time) string {
	const layout = "20060102T150405Z"
	from, to := p.window.From, p.window.To
	if p.open {
		to = now
	}
	if to.Before(from) {
		to = from
	}
	if earliest := time.Date(0, time.January, 1, 0, 0, 0, 0, time.UTC); from.Before(earliest) {
		from = earliest // The day before a to in the year 0 cannot be printed.
	}
	return fmt.Sprintf("readings_%s_%s.csv", from.UTC().Format(layout), to.UTC().Format(layout))
}

// tooManyRows says how many rows there are and which window would fit
// (decision 30).
func (p *exportPlan) tooManyRows(e *roomsensor.TooManyRowsError) error {
	count := fmt.Sprint(e.Rows)
	if e.Rows > roomsensor.ExportCountCap {
		count = "more than 1,000,000"
	}
	fix := "Name fewer devices."
	if e.FitsUntil != nil {
		until := *e.FitsUntil
		if widest := p.window.From.Add(roomsensor.MaxWindow); until.After(widest) {
			until = widest
		}
		fix = fmt.Sprintf("Ask for from=%s&to=%s or name fewer devices.",
			roomsensor.FormatTime(p.window.From), roomsensor.FormatTime(until))
	}
	return roomsensor.NewError(roomsensor.CodeCSVTooLarge, "", fmt.Sprintf(
		"The export would have %s rows; at most %d are allowed. %s", count, roomsensor.MaxExportRows, fix))
}
