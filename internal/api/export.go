package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/compress"
	"roomsensor/internal/csvenc"
	"roomsensor/internal/roomsensor"
)

const (
	// openTimeout bounds counting the rows, which the database itself ends
	// after 30 seconds.
	openTimeout = 35 * time.Second
	// exportChunk is how much CSV is gathered before it is sent.
	exportChunk = 32 << 10
)

// layout is a shape of the CSV.
type layout interface {
	AppendHeader(dst []byte) []byte
	AppendRow(dst []byte, row *roomsensor.ExportRow) []byte
	AppendEnd(dst []byte) []byte
}

// exportReadings streams the readings of a team as CSV (spec 4, readings.csv).
func (s *server) exportReadings(c *call) error {
	plan, err := s.planInTime(c)
	if err != nil {
		return err
	}
	release, err := s.exports.take(c.key.ID)
	if err != nil {
		return err
	}
	defer release()
	s.metrics.exports.Inc()
	defer s.metrics.exports.Dec()

	// The read deadline of the server would count as the client's leaving.
	_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Time{})
	ctx, dog := watch(c.ctx(), openTimeout)
	defer dog.stop()
	return dog.explain(s.export(ctx, c, plan, dog))
}

// planInTime plans an export within the time of other requests.
func (s *server) planInTime(c *call) (*exportPlan, error) {
	whole := c.Request()
	defer c.SetRequest(whole)
	defer c.within(requestTimeout)()
	return s.planExport(c)
}

func (s *server) export(ctx context.Context, c *call, plan *exportPlan, dog *watchdog) error {
	export, err := s.open(ctx, c, plan)
	if err != nil {
		return err
	}
	defer export.Close()
	lines := export.Rows()
	if plan.wide {
		lines = export.Lines()
	}
	c.rows = export.Rows()
	coding := compress.Choose(c.Request().Header.Values("Accept-Encoding"))
	c.exportHeaders(plan.fileName(s.now()), lines, coding)
	if c.Request().Method == http.MethodHead {
		c.Response().WriteHeader(http.StatusOK)
		return nil
	}
	return newCSVStream(c, plan, coding, dog).send(ctx, export)
}

func (s *server) open(ctx context.Context, c *call, plan *exportPlan) (Export, error) {
	if plan.empty() {
		return noRows{}, nil
	}
	export, err := s.backend.OpenExport(ctx, c.key.TeamID,
		roomsensor.ExportQuery{Window: plan.window, Devices: plan.devices, Lines: plan.wide})
	if tooMany, ok := errors.AsType[*roomsensor.TooManyRowsError](err); ok {
		return nil, plan.tooManyRows(tooMany)
	}
	return export, err
}

// exportHeaders is what is said before the body, to HEAD too (decision 32).
func (c *call) exportHeaders(fileName string, lines int, coding compress.Coding) {
	c.setHeader("Content-Type", "text/csv; charset=utf-8")
	c.setHeader("Content-Disposition", fmt.Sprintf("attachment; filename=%q", fileName))
	c.setHeader("X-Row-Count", strconv.Itoa(lines))
	c.setHeader("Vary", "Accept-Encoding")
	if coding != compress.Identity {
		c.setHeader("Content-Encoding", string(coding))
	}
}

// csvStream turns rows into the body of an export, a chunk at a time.
type csvStream struct {
	layout layout
	answer *echo.Response
	out    io.Writer        // to the answer, through the compression
	zipped *compress.Writer // nil where the body is not compressed
	dog    *watchdog
	chunk  []byte
	sent   int
}

func newCSVStream(c *call, plan *exportPlan, coding compress.Coding, dog *watchdog) *csvStream {
	s := &csvStream{answer: c.Response(), out: c.Response(), dog: dog}
	if plan.wide {
		s.layout = csvenc.NewWide(plan.team, plan.devices)
	} else {
		s.layout = csvenc.NewLong(plan.team)
	}
	if coding != compress.Identity {
		s.zipped = compress.NewWriter(c.Response(), coding)
		s.out = s.zipped
	}
	return s
}

// send writes the whole body. On an error the body is left without its end:
// fail then breaks the connection.
func (s *csvStream) send(ctx context.Context, export Export) error {
	if err := s.sendRows(ctx, export); err != nil {
		if s.zipped != nil {
			s.zipped.Abandon()
		}
		return err
	}
	if s.zipped == nil {
		return nil
	}
	s.dog.rest()
	if err := s.zipped.Close(); err != nil {
		return fmt.Errorf("ending a compressed export: %w", err)
	}
	return nil
}

func (s *csvStream) sendRows(ctx context.Context, export Export) error {
	buffer := getBuffer()
	defer func() { *buffer = s.chunk; putBuffer(buffer) }()
	s.chunk = s.layout.AppendHeader(*buffer)
	if err := export.Each(ctx, s.add); err != nil {
		return fmt.Errorf("reading an export: %w", err)
	}
	if s.sent != export.Rows() {
		return fmt.Errorf("an export of %d rows ended after %d", export.Rows(), s.sent)
	}
	s.chunk = s.layout.AppendEnd(s.chunk)
	return s.flush()
}

func (s *csvStream) add(row *roomsensor.ExportRow) error {
	s.chunk = s.layout.AppendRow(s.chunk, row)
	s.sent++
	if len(s.chunk) < exportChunk {
		return nil
	}
	return s.flush()
}

func (s *csvStream) flush() error {
	s.dog.rest() // Every piece that is sent has its own deadline.
	defer s.dog.progress()
	if !s.answer.Committed {
		// The headers go ahead, so that they never tell a length: HEAD does not
		// know it.
		s.answer.WriteHeader(http.StatusOK)
		s.answer.Flush()
	}
	if _, err := s.out.Write(s.chunk); err != nil {
		return fmt.Errorf("sending an export: %w", err)
	}
	s.chunk = s.chunk[:0]
	return nil
}
