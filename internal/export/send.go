package export

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/compress"
	"roomsensor/internal/httpedge"
)

// sendTimeout limits the sending of the rows. In this time, a line of 1 Mbit/s takes 200 MB; 250,000 rows are 26 MB.
const sendTimeout = 30 * time.Minute

// download is an export whose rows were counted. It is ready to be sent.
type download struct {
	fileName    string
	contentType string
	coded       bool   // whether the body may have a content coding
	rows        int    // readings, for the access log
	lines       int    // X-Row-Count
	tag         string // empty unless the request asks for it
	body        func(ctx context.Context, w *writer) error
	close       func()
	recheck     func(context.Context) error // of Request
}

// prepare does what needs the database before the first byte: steps 7 to 9 of decision 22 b.
func (e *Exporter) prepare(ctx context.Context, c echo.Context, r *Request) (*download, error) {
	// When the server's read deadline passes, the context ends as if the client had left.
	_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Time{})
	countOnly := c.Request().Method == http.MethodHead && !isConditional(c.Request())
	if r.Format == NightsCSV {
		return e.prepareNights(ctx, r, countOnly)
	}
	plan, err := e.plan(ctx, r)
	if err != nil {
		return nil, err
	}
	switch r.Format {
	case AggregatesCSV:
		return e.prepareAggregates(ctx, r, plan, countOnly)
	case Excel, ExcelCSV:
		return e.prepareSheet(ctx, r, plan, countOnly)
	case ReadingsCSV, Parquet, NightsCSV:
	}
	return e.prepareReadings(ctx, r, plan, countOnly)
}

// answer sends the headers, and the body unless the method is HEAD.
func (d *download) answer(ctx context.Context, c echo.Context) error {
	if d.tag != "" {
		c.Response().Header().Set("ETag", d.tag)
		if httpedge.HasTag(c.Request(), d.tag) {
			c.Response().WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	coding := compress.Identity
	if d.coded {
		coding = httpedge.ChooseCoding(c.Response(), c.Request())
	}
	d.setHeaders(c.Response().Header(), coding)
	if c.Request().Method == http.MethodHead {
		c.Response().WriteHeader(http.StatusOK)
		return nil
	}
	return d.sendInTime(ctx, c.Response(), coding)
}

// setHeaders sets the headers of GET and HEAD (decision 32).
func (d *download) setHeaders(h http.Header, coding compress.Coding) {
	h.Set("Content-Type", d.contentType)
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", d.fileName))
	h.Set("X-Row-Count", strconv.Itoa(d.lines))
	if !d.coded {
		// The index of Parquet is at its end: a reader that asks for a range of bytes would count all rows again for each.
		h.Set("Accept-Ranges", "none")
	}
	if coding != compress.Identity {
		h.Set("Content-Encoding", string(coding))
	}
}

// ErrNotReceived is the cause of an export that could not be sent, because its client left or is too slow.
var ErrNotReceived = errors.New("the client did not receive the export")

// errTooSlow ends an export whose client is too slow.
var errTooSlow = fmt.Errorf("%w within %s", ErrNotReceived, sendTimeout)

// sendInTime sends the body within sendTimeout: a client that takes a few bytes from time to time must not keep its
// slot for days.
func (d *download) sendInTime(ctx context.Context, response *echo.Response, coding compress.Coding) error {
	ctx, cancel := context.WithTimeoutCause(ctx, sendTimeout, errTooSlow)
	defer cancel()
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = http.NewResponseController(response).SetWriteDeadline(time.Now()) // A write may be waiting.
	})
	defer func() {
		if !stop() {
			<-interrupted // The next request may have the same Response.
		}
	}()
	w := newWriter(response, coding)
	if d.recheck != nil {
		w.recheck = func() error { return d.recheck(ctx) }
	}
	err := w.send(ctx, d.body)
	if err != nil && errors.Is(context.Cause(ctx), errTooSlow) {
		return errTooSlow
	}
	return err
}
