// Package export counts and sends exports of a team's data: readings as CSV in two shapes or as Parquet, aggregates and
// nights as CSV, and readings and aggregates for spreadsheets. The API and the dashboard have an Exporter each. They
// parse what a client asks for into a Request, and the Exporter does the rest of decision 22 b: admission, selection,
// limits, headers and the stream of the body.
//
//	export.go      the Exporter and the data that it needs
//	request.go     Request, and how GET /readings.csv and GET /readings.parquet say it
//	slots.go       the limit of concurrent exports
//	plan.go        which devices and which time an export has
//	readings.go    exports of readings, and their size
//	aggregates.go  exports of aggregates
//	nights.go      exports of nights
//	spreadsheet.go exports for Excel, of readings or means
//	send.go        deadline and headers of a response
//	spool.go       bodies in memory, and the tag of an export
//	writer.go      the stream of the body
package export

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
	"roomsensor/internal/roomsensor/airquality"
)

// Backend has the stored data of exports. Its methods return roomsensor.ErrNotFound for what does not exist or belongs
// to another team, and a *roomsensor.TooManyRowsError if a query selects too many rows.
type Backend interface {
	DeviceNames(ctx context.Context, teamID uuid.UUID) ([]roomsensor.NamedDevice, error)
	// TaggedDevices returns the ids of the devices that have all of some tags, ascending.
	TaggedDevices(ctx context.Context, teamID uuid.UUID, tags map[string]string) ([]uuid.UUID, error)
	Assignment(ctx context.Context, teamID, assignmentID uuid.UUID) (roomsensor.Assignment, error)
	// TeamAssignments returns at most Limit assignments of a query, the newest start first.
	TeamAssignments(
		ctx context.Context, teamID uuid.UUID, q roomsensor.TeamAssignmentQuery,
	) ([]roomsensor.DeviceAssignment, error)
	// HeldAssignments returns the assignments that held some devices of a team during a window, by device and start. It
	// may stop after one more than roomsensor.MaxExportAssignments.
	HeldAssignments(
		ctx context.Context, teamID uuid.UUID, devices []uuid.UUID, w roomsensor.Window,
	) ([]roomsensor.Assignment, error)
	Nights

	OpenExport(ctx context.Context, teamID uuid.UUID, q roomsensor.ExportQuery) (Readings, error)
	OpenAggregates(ctx context.Context, teamID uuid.UUID, q aggregate.ExportQuery) (Aggregates, error)
}

// Nights reads what was measured in nights, the newest first.
type Nights interface {
	// EachNight calls a function with the number of each night and the assignments that overlap it, unordered, until it
	// returns false. most is how many assignments the function takes.
	EachNight(ctx context.Context, teamID uuid.UUID, nights []airquality.NightQuery, most int,
		do func(n int, rooms []airquality.NightRoom) bool) error
	// CountNights returns how many assignments EachNight has in all nights, cut to roomsensor.ExportCountCap + 1.
	CountNights(ctx context.Context, teamID uuid.UUID, nights []airquality.NightQuery) (int, error)
}

type (
	// Readings are the readings of an export.
	Readings = roomsensor.ReadingExport
	// Aggregates are the aggregates of an export.
	Aggregates = aggregate.Export
)

// retryAfter is the Retry-After of an export over the limit of concurrent exports.
const retryAfter = 10 * time.Second

// prepareTimeout limits each step before the first byte of an export: the count of rows, the lines of aggregates, or
// the body for its tag. Proxies often wait for a minute. The database itself stops a count after 30 seconds. A standby
// may take 20 seconds before that to read all rows.
const prepareTimeout = 55 * time.Second

// Exporter counts and sends exports.
type Exporter struct {
	backend Backend
	slots   *slots
	timeout time.Duration
	now     func() time.Time
}

// New returns an Exporter that runs some exports at the same time. timeout limits the reading of what an export
// selects, before its rows.
func New(backend Backend, concurrent int, timeout time.Duration, now func() time.Time) *Exporter {
	return &Exporter{backend, newSlots(concurrent), timeout, now}
}

// Metrics returns the metrics of the running exports.
func (e *Exporter) Metrics() []prometheus.Collector { return e.slots.metrics() }

// Send answers a request with an export, or only with its headers if the method is HEAD. All exports share the limit of
// concurrent exports (A0.2). rows is the number of rows for the access log, or -1 if they were not counted. If err
// comes after the first byte, the caller must break the connection.
func (e *Exporter) Send(ctx context.Context, c echo.Context, r *Request) (rows int, err error) {
	slot, err := e.slots.acquire(r)
	if err != nil {
		return -1, err
	}
	defer slot.release()
	d, err := e.prepare(ctx, c, r)
	if err != nil {
		return -1, err
	}
	defer d.close()
	d.recheck = r.Recheck
	if isConditional(c.Request()) {
		if err := d.readTag(ctx, c.Request().Method != http.MethodHead); err != nil {
			return -1, err
		}
	}
	slot.send()
	return d.rows, d.answer(ctx, c)
}

// Size is what an export would have.
type Size struct {
	Devices     int // selected
	Rows, Lines int // readings, and lines of the file without its header
	Metrics     int // columns of metrics per device
	TooMany     *roomsensor.TooManyRowsError
}

// Count returns the size of an export of readings, also of one that has too many rows.
func (e *Exporter) Count(ctx context.Context, r *Request) (Size, error) {
	slot, err := e.slots.acquire(r)
	if refusal, ok := errors.AsType[*roomsensor.Error](err); ok {
		refusal.Message = "Too many exports run at the same time. Try again in a few seconds."
		return Size{}, refusal
	}
	defer slot.release()
	return e.measure(ctx, r)
}
