package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"roomsensor/internal/compress"
	"roomsensor/internal/httpedge"
)

const (
	// openTimeout limits the count of the rows. The database itself stops it after 30 seconds. A standby may take 20
	// seconds before that to read all rows.
	openTimeout = 55 * time.Second
	// sendTimeout limits the sending of the rows. In this time, a line of 1 Mbit/s takes 200 MB; 250,000 rows are 26 MB.
	sendTimeout = 30 * time.Minute
	// exportRetryAfter is the Retry-After of an export over the limit of concurrent exports.
	exportRetryAfter = 10 * time.Second
)

// The names of the exports, which are the last segments of their paths. Their URLs may hold a key (decision 26).
const (
	readingsCSV     = "readings.csv"
	readingsParquet = "readings.parquet"
	aggregatesCSV   = "aggregates.csv"
)

// exportNames lists the exports.
var exportNames = []string{readingsCSV, readingsParquet, aggregatesCSV}

// download is an export whose rows were counted. It is ready to be sent.
type download struct {
	fileName    string
	contentType string
	coded       bool // whether the body may have a content coding
	rows        int  // readings, for the access log
	lines       int  // X-Row-Count
	body        func(ctx context.Context, w *exportWriter) error
	close       func()
}

// exporter runs the exports of readings. The API and PersonExporter have one each.
type exporter struct {
	backend Backend
	slots   *exportSlots
	now     func() time.Time
	timeout time.Duration // of all that an export reads before its rows
}

// sendExport answers a request for an export, whose parameters were checked. prepare does what needs the database
// before the first byte: steps 7 to 9 of decision 22 b. All exports share the limit of concurrent exports (A0.2).
func (e *exporter) sendExport(
	ctx context.Context, c *call, prepare func(ctx context.Context) (*download, error),
) error {
	slot, ok := e.slots.acquire(c.key)
	if !ok {
		return httpedge.Overloaded(exportRetryAfter,
			"Too many exports run at the same time. Try again after the seconds in Retry-After.")
	}
	defer slot.release()

	// When the server's read deadline passes, the context ends as if the client had left.
	_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Time{})
	d, err := prepare(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	slot.send()
	c.rows = d.rows
	coding := compress.Identity
	if d.coded {
		coding = httpedge.ChooseCoding(c.Response(), c.Request())
	}
	c.setExportHeaders(d, coding)
	if c.Request().Method == http.MethodHead {
		c.Response().WriteHeader(http.StatusOK)
		return nil
	}
	return sendInTime(ctx, c, d, coding)
}

// errTooSlow ends an export whose client is too slow.
var errTooSlow = fmt.Errorf("the client did not receive the export within %s", sendTimeout)

// sendInTime sends an export within sendTimeout: a client that takes a few bytes from time to time must not keep its
// slot for days.
func sendInTime(ctx context.Context, c *call, d *download, coding compress.Coding) error {
	ctx, cancel := context.WithTimeoutCause(ctx, sendTimeout, errTooSlow)
	defer cancel()
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Now()) // A write may be waiting.
	})
	defer func() {
		if !stop() {
			<-interrupted // The next request may have the same Response.
		}
	}()
	err := newExportWriter(c, coding).send(ctx, d.body)
	if err != nil && errors.Is(context.Cause(ctx), errTooSlow) {
		return errTooSlow
	}
	return err
}

// setExportHeaders sets the headers of GET and HEAD (decision 32).
func (c *call) setExportHeaders(d *download, coding compress.Coding) {
	c.setHeader("Content-Type", d.contentType)
	c.setHeader("Content-Disposition", fmt.Sprintf("attachment; filename=%q", d.fileName))
	c.setHeader("X-Row-Count", strconv.Itoa(d.lines))
	if coding != compress.Identity {
		c.setHeader("Content-Encoding", string(coding))
	}
}
