package export

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/compress"
	"roomsensor/internal/csvenc"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/test/conformance"
)

// An export takes at most as many devices as can be sorted, and 1,000 in the wide shape (decision 29 h).
func TestDeviceCount(t *testing.T) {
	t.Parallel()
	require.NoError(t, checkWideCount(maxWideDevices))
	require.Error(t, checkWideCount(maxWideDevices+1))
	require.NoError(t, checkDeviceCount(roomsensor.MaxExportDevices))
	require.Error(t, checkDeviceCount(roomsensor.MaxExportDevices+1))
}

// Four exports of a key and eight in all run at the same time, and each team always gets its share (decision 32 f and
// i).
func TestSlots(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 32 i")
	slots := newSlots(16)
	acquire := func(team, key byte) (running int) {
		for {
			_, err := slots.acquire(&Request{Requester: string([]byte{team, key}), TeamID: uuid.UUID{team}})
			if err != nil {
				return running
			}
			running++
		}
	}
	for i, want := range []int{4, 4, 0} {
		require.Equal(t, want, acquire(1, byte(i)), "eight of a team alone")
	}
	require.Equal(t, 4, acquire(2, 0), "half of what remains")
	require.Equal(t, 2, acquire(3, 0))
	require.Equal(t, 1, acquire(4, 0))
	require.Equal(t, 1, acquire(5, 0))
	require.Zero(t, acquire(6, 0), "all slots are taken")

	require.InDelta(t, 16, slots.count(false), 0)
	for slot := range slots.running {
		slot.began = time.Now().Add(-time.Hour)
		slot.send()
		break
	}
	require.InDelta(t, 15, slots.count(false), 0)
	require.InDelta(t, 1, slots.count(true), 0)
	require.GreaterOrEqual(t, slots.oldest(), time.Hour.Seconds())
	for slot := range slots.running {
		slot.release()
	}
	require.Zero(t, slots.oldest())
	require.Equal(t, 4, acquire(6, 0), "after a release")
}

// slowDeadline is a response whose SetWriteDeadline takes its time.
type slowDeadline struct {
	http.ResponseWriter

	began chan struct{}
	ended atomic.Bool
}

func (w *slowDeadline) SetWriteDeadline(time.Time) error {
	close(w.began)
	<-time.After(50 * time.Millisecond)
	w.ended.Store(true)
	return nil
}

// TestSendInTimeEnds checks that nothing uses the response of an export after its end: echo gives it to another request.
func TestSendInTimeEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	response := &slowDeadline{ResponseWriter: httptest.NewRecorder(), began: make(chan struct{})}
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	d := &download{body: func(ctx context.Context, _ *writer) error {
		cancel()
		<-response.began
		return ctx.Err()
	}}
	err := d.sendInTime(ctx, echo.New().NewContext(request, response).Response(), compress.Identity)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, response.ended.Load())
}

// TestRecheck checks that an export ends with an error when the requester has lost the right to it, and that the right is
// checked before the first chunk and then only from time to time.
func TestRecheck(t *testing.T) {
	t.Parallel()
	var lost error
	checks := 0
	c := echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder())
	w := newWriter(c.Response(), compress.Identity)
	w.recheck = func() error { checks++; return lost }
	send := func() error {
		return w.send(t.Context(), func(_ context.Context, w *writer) error {
			_, err := w.Write(make([]byte, chunkBytes))
			return err
		})
	}
	require.NoError(t, send())
	require.Equal(t, 1, checks)
	lost = errors.New("lost")
	require.NoError(t, send())
	require.Equal(t, 1, checks)
	w.checked = w.checked.Add(-recheckEvery)
	require.ErrorIs(t, send(), lost)
	require.Equal(t, 2, checks)
}

// lostRows are rows of which only the first can be read.
type lostRows struct{}

var errLost = errors.New("lost")

func (lostRows) Rows() int { return 2 }
func (lostRows) Close()    {}

func (lostRows) Each(_ context.Context, f func(*sheetRow) error) error {
	return errors.Join(f(&sheetRow{}), errLost)
}

// A spreadsheet whose rows could not be read is not sent: it would look complete.
func TestSpreadsheetOfLostRows(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := sheetContent{request: &Request{Sheet: &Sheet{Zone: time.UTC}}}
	require.ErrorIs(t, c.sendExcel(t.Context(), newExcel(&out), lostRows{}), errLost)
	require.ErrorIs(t, c.send(t.Context(), newExcelCSV(&out, false), lostRows{}), errLost)
	require.Zero(t, out.Len())
}

// A text of digits and commas is one cell, whatever separates the cells.
func TestExcelCSVCell(t *testing.T) {
	t.Parallel()
	for comma, want := range map[bool]string{false: "x,\"12,14\"\r\n", true: "x;12,14\r\n"} {
		var out bytes.Buffer
		c := newExcelCSV(&out, comma)
		c.cell(0, "x")
		c.cell(1, "12,14")
		require.NoError(t, c.endLine())
		require.NoError(t, c.end())
		require.Equal(t, want, out.String())
	}
}

// Lines of nights that are kept in several parts are sent as they are.
func TestNightLines(t *testing.T) {
	t.Parallel()
	lines, want := &nightLines{spool: spool{part: []byte("head\n")}}, []byte("head\n")
	rooms := make([]airquality.NightRoom, 200)
	for day := range 20 {
		date := time.Date(2026, time.November, day+1, 0, 0, 0, 0, time.UTC)
		require.NoError(t, lines.add(date, rooms))
		for i := range rooms {
			want = csvenc.AppendNight(want, date, &rooms[i])
		}
	}
	require.NoError(t, lines.pack())
	require.Equal(t, 4000, lines.rows)
	require.Greater(t, len(lines.parts), 2)
	recorder := httptest.NewRecorder()
	w := newWriter(echo.NewResponse(recorder, echo.New()), compress.Identity)
	require.NoError(t, w.send(t.Context(), lines.send))
	require.Equal(t, string(want), recorder.Body.String())
}

// heldBackend has a number of assignments.
type heldBackend struct {
	Backend

	assignments int
}

func (b heldBackend) HeldAssignments(
	context.Context, uuid.UUID, []uuid.UUID, roomsensor.Window,
) ([]roomsensor.Assignment, error) {
	return make([]roomsensor.Assignment, b.assignments), nil
}

// TestTooManyAssignments checks that an export is refused before it leaves out assignments.
func TestTooManyAssignments(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A18.3")
	from := time.Date(2026, time.November, 19, 0, 0, 0, 0, time.UTC)
	p := &plan{window: roomsensor.Window{From: from, To: from.AddDate(0, 0, 1)}}
	held, err := (&Exporter{backend: heldBackend{assignments: 20_000}}).assignments(t.Context(), &Request{}, p)
	require.NoError(t, err)
	require.Len(t, held, 20_000)
	_, err = (&Exporter{backend: heldBackend{assignments: 20_001}}).assignments(t.Context(), &Request{}, p)
	require.ErrorContains(t, err, "Ask for from=2026-11-19T00:00:00Z&to=2026-11-19T12:00:00Z or name fewer devices.")
}
