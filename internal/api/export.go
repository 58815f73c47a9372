package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/compress"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

const (
	devicesParameter = "devices"
	shapeParameter   = "shape"

	// maxNamedDevices is the limit of ids in the parameter devices (decision 31).
	maxNamedDevices = 1000
	// maxWideDevices is the limit of devices in the wide shape (decision 29).
	maxWideDevices = 1000

	// openTimeout limits the count of the rows. The database itself stops it after 30 seconds.
	openTimeout = 35 * time.Second
	// sendTimeout limits the sending of the rows. In this time, a line of 1 Mbit/s takes 200 MB; 250,000 rows are 26 MB.
	sendTimeout = 30 * time.Minute
	// exportRetryAfter is the Retry-After of an export over the limit of concurrent exports.
	exportRetryAfter = 10 * time.Second
)

// exportReadings handles GET /readings.csv: it streams readings of the team (spec 4, readings.csv).
func (s *server) exportReadings(ctx context.Context, c *call) error {
	asked, err := s.readExportRequest(c)
	if err != nil {
		return err
	}
	slot, ok := s.exports.acquire(c.key)
	if !ok {
		return httpedge.Overloaded(exportRetryAfter,
			"Too many exports run at the same time. Try again after the seconds in Retry-After.")
	}
	defer slot.release()

	// When the server's read deadline passes, the context ends as if the client had left.
	_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Time{})
	plan, err := s.planExport(ctx, c, asked)
	if err != nil {
		return err
	}
	export, err := s.open(ctx, c, plan)
	if err != nil {
		return err
	}
	defer export.Close()
	slot.send()
	lines := export.Rows()
	if plan.wide {
		lines = export.Lines()
	}
	c.rows = export.Rows()
	coding := httpedge.ChooseCoding(c.Response(), c.Request())
	c.setExportHeaders(plan.fileName(s.now()), lines, coding)
	if c.Request().Method == http.MethodHead {
		c.Response().WriteHeader(http.StatusOK)
		return nil
	}
	return sendInTime(ctx, c, newCSVStream(c, plan, coding), export)
}

// errTooSlow ends an export whose client is too slow.
var errTooSlow = fmt.Errorf("the client did not receive the export within %s", sendTimeout)

// sendInTime sends an export within sendTimeout: a client that takes a few bytes from time to time must not keep its
// slot for days.
func sendInTime(ctx context.Context, c *call, stream *csvStream, export Export) error {
	ctx, cancel := context.WithTimeoutCause(ctx, sendTimeout, errTooSlow)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Now()) // A write may be waiting.
	})
	defer stop()
	err := stream.send(ctx, export)
	if err != nil && errors.Is(context.Cause(ctx), errTooSlow) {
		return errTooSlow
	}
	return err
}

func (s *server) open(ctx context.Context, c *call, plan *exportPlan) (Export, error) {
	if plan.empty() {
		return noRows{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	export, err := s.backend.OpenExport(ctx, c.key.TeamID,
		roomsensor.ExportQuery{Window: plan.window, Devices: plan.devices, Lines: plan.wide})
	if tooMany, ok := errors.AsType[*roomsensor.TooManyRowsError](err); ok {
		return nil, plan.tooManyRows(tooMany)
	}
	return export, err
}

// setExportHeaders sets the headers of GET and HEAD (decision 32).
func (c *call) setExportHeaders(fileName string, lines int, coding compress.Coding) {
	c.setHeader("Content-Type", "text/csv; charset=utf-8")
	c.setHeader("Content-Disposition", fmt.Sprintf("attachment; filename=%q", fileName))
	c.setHeader("X-Row-Count", strconv.Itoa(lines))
	if coding != compress.Identity {
		c.setHeader("Content-Encoding", string(coding))
	}
}

// noRows is the export of a plan that selects nothing. Its CSV has only the header row.
type noRows struct{}

func (noRows) Rows() int  { return 0 }
func (noRows) Lines() int { return 0 }
func (noRows) Close()     {}

func (noRows) Each(context.Context, func(*roomsensor.ExportRow) error) error { return nil }

// exportRequest has the parameters of an export.
type exportRequest struct {
	timeRange
	named []uuid.UUID // the ids in the parameter devices, as sent
	all   bool        // whether devices was not sent
	wide  bool
}

// exportPlan describes the content of an export.
type exportPlan struct {
	window  roomsensor.Window
	open    bool // whether the window ends now
	team    []roomsensor.NamedDevice
	devices []uuid.UUID // selected; ascending, without duplicates
	wide    bool
}

func (p *exportPlan) empty() bool { return len(p.devices) == 0 || p.window.Empty() }

// planExport resolves the parameters, in the order of decision 22: device, assignment, size. It has the deadline of
// other requests.
func (s *server) planExport(ctx context.Context, c *call, asked *exportRequest) (*exportPlan, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	team, err := s.backend.DeviceNames(ctx, c.key.TeamID)
	if err != nil {
		return nil, err
	}
	plan := &exportPlan{window: asked.window, team: team, wide: asked.wide}
	if plan.devices, err = asked.selectFrom(team); err != nil {
		return nil, err
	}
	if asked.assignment != nil {
		if err := s.narrowToAssignment(ctx, c, asked, plan); err != nil {
			return nil, err
		}
	}
	return plan, checkDeviceCount(len(plan.devices), plan.wide)
}

// checkDeviceCount returns csv_too_large if an export selects too many devices.
func checkDeviceCount(n int, wide bool) error {
	switch {
	case wide && n > maxWideDevices:
		return roomsensor.NewError(roomsensor.CodeCSVTooLarge, "", fmt.Sprintf(
			"The wide shape takes at most %d devices, and %d are selected. Name fewer in devices, or ask for shape=long.",
			maxWideDevices, n))
	case n > roomsensor.MaxExportDevices:
		return roomsensor.NewError(roomsensor.CodeCSVTooLarge, "", fmt.Sprintf(
			"An export takes at most %d devices, and %d are selected. Name fewer in devices.", roomsensor.MaxExportDevices, n))
	}
	return nil
}

func (s *server) readExportRequest(c *call) (*exportRequest, error) {
	q, err := c.query(fromParameter, toParameter, lastParameter, assignmentParameter,
		devicesParameter, shapeParameter, keyParameter)
	if err != nil {
		return nil, err
	}
	asked := &exportRequest{}
	if asked.timeRange, err = s.readTimeRange(q); err != nil {
		return nil, err
	}
	if err := asked.readDevices(q.Get(devicesParameter)); err != nil {
		return nil, err
	}
	return asked, asked.readShape(q.Get(shapeParameter))
}

// readDevices reads the comma-separated ids. Without the parameter all devices are selected.
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
				"devices must be a list of device_ids separated by commas, each a UUID of 36 characters.")
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
	slices.SortFunc(selected, func(a, b uuid.UUID) int { return cmp.Compare(string(a[:]), string(b[:])) })
	return slices.Compact(selected), nil
}

// narrowToAssignment limits the plan to the device and the window of the assignment (spec 4, readings.csv, rule 1).
func (s *server) narrowToAssignment(ctx context.Context, c *call, asked *exportRequest, plan *exportPlan) error {
	assignment, err := s.backend.Assignment(ctx, c.key.TeamID, *asked.assignment)
	if errors.Is(err, roomsensor.ErrNotFound) {
		return roomsensor.NewError(roomsensor.CodeAssignmentNotFound, assignmentParameter,
			"No device of your team has an assignment with this id. GET /devices/{device_id}/assignments lists them.")
	}
	if err != nil {
		return err
	}
	plan.window = asked.within(&assignment)
	plan.open = asked.request.IsZero() && assignment.EndedAt == nil
	other := func(id uuid.UUID) bool { return id != assignment.DeviceID }
	plan.devices = slices.DeleteFunc(plan.devices, other)
	return nil
}

// fileName returns the name of the file. It contains the resolved window, truncated to seconds; an open end is now
// (decision 32).
func (p *exportPlan) fileName(now time.Time) string {
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
	return fmt.Sprintf("readings_%s_%s.csv", from.UTC().Format(format), to.UTC().Format(format))
}

// tooManyRows returns csv_too_large with the number of rows and the window that would fit (decision 30).
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
