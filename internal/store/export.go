package store

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

const (
	// exportCountTimeout bounds each statement before the first row is sent.
	exportCountTimeout = "30s"
	// closeTimeout bounds the rollback at the end.
	closeTimeout = 2 * time.Second
)

// OpenedExport is an export that is ready to be streamed. It is an alias, because the API declares the same type and
// neither package imports the other.
type OpenedExport = interface {
	Rows() int
	Lines() int
	Each(ctx context.Context, do func(*roomsensor.ExportRow) error) error
	Close()
}

// Export is a set of readings that was counted and is about to be streamed. Count and rows come from one snapshot
// (decision 32). It holds a connection until Close.
type Export struct {
	store  *Store
	conn   *pgxpool.Conn
	tx     pgx.Tx
	teamID uuid.UUID
	query  roomsensor.ExportQuery
	rows   int
	lines  int
	extent roomsensor.Window // contains all rows; the whole window if the rows fill enough of it
}

// OpenExport counts the readings that a query selects. It returns a TooManyRowsError if there are more than
// MaxExportRows (decision 30).
func (s *Store) OpenExport(
	ctx context.Context, teamID uuid.UUID, q roomsensor.ExportQuery,
) (OpenedExport, error) {
	conn, err := s.exports.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("acquiring a connection for an export: %w", translate(err))
	}
	e := &Export{store: s, conn: conn, teamID: teamID, query: q}
	if err := e.begin(ctx); err != nil {
		e.Close() //nolint:contextcheck // It must also roll back after ctx was canceled.
		return nil, fmt.Errorf("counting an export: %w", translate(err))
	}
	return e, nil
}

func (e *Export) begin(ctx context.Context) (err error) {
	if e.tx, err = e.conn.BeginTx(ctx, snapshot); err != nil {
		return err //nolint:wrapcheck // OpenExport wraps it.
	}
	err = e.store.set(ctx, e.tx, "statement_timeout", exportCountTimeout, "plan_cache_mode", "force_custom_plan")
	if err != nil {
		return err
	}
	e.query.Devices, err = e.store.queries.DeviceIDList(ctx, e.tx,
		db.DeviceIDListParams{TeamID: e.teamID, DeviceIds: e.query.Devices})
	if err != nil {
		return err
	}
	if err := e.measure(ctx); err != nil {
		return err
	}
	if e.rows > roomsensor.MaxExportRows {
		return e.tooManyRows(ctx)
	}
	// From here on the client sets the pace. The API ends an export that makes no progress.
	return e.store.set(ctx, e.tx, "statement_timeout", "0", "idle_in_transaction_session_timeout", "0")
}

// measure counts the rows and sets the extent.
func (e *Export) measure(ctx context.Context) error {
	if e.query.Lines {
		return e.countLines(ctx)
	}
	rows, err := e.count(ctx, e.query.Window, roomsensor.MaxExportRows+1)
	if err != nil {
		return err
	}
	e.rows, e.extent = int(rows), e.query.Window
	if e.rows > roomsensor.MaxExportRows ||
		sliceableAsIs(e.query.Window, len(e.query.Devices), e.rows, e.store.sliceRows) {
		return nil
	}
	found, err := e.store.queries.ReadingGetExtent(ctx, e.tx, db.ReadingGetExtentParams{
		DeviceIds: e.query.Devices, TeamID: e.teamID, WindowFrom: e.query.Window.From, WindowTo: e.query.Window.To,
	})
	if err != nil {
		return err
	}
	e.narrow(found.FirstAt, found.LastAt)
	return nil
}

// countLines counts the rows and the lines of the wide shape, and sets the extent.
func (e *Export) countLines(ctx context.Context) error {
	counted, err := e.store.queries.ReadingCountLines(ctx, e.tx, db.ReadingCountLinesParams{
		DeviceIds: e.query.Devices, TeamID: e.teamID, WindowFrom: e.query.Window.From, WindowTo: e.query.Window.To,
		Most: roomsensor.MaxExportRows + 1,
	})
	if err != nil {
		return err
	}
	e.rows, e.lines = int(counted.Rows), int(counted.Lines)
	e.narrow(counted.FirstAt, counted.LastAt)
	return nil
}

// narrow sets the extent to the interval from the first to the last bucket.
func (e *Export) narrow(first, last time.Time) {
	e.extent = e.query.Window.Intersect(roomsensor.Window{From: first, To: last.Add(roomsensor.BucketLength)})
}

func (e *Export) count(ctx context.Context, w roomsensor.Window, most int64) (int64, error) {
	return e.store.queries.ReadingCount(ctx, e.tx, db.ReadingCountParams{
		DeviceIds: e.query.Devices, TeamID: e.teamID, WindowFrom: w.From, WindowTo: w.To, Most: most,
	})
}

// tooManyRows returns the error of an export that is too large.
func (e *Export) tooManyRows(ctx context.Context) error {
	tooMany, err := fitWindow(e.query.Window, func(w roomsensor.Window, most int64) (int64, error) {
		return e.count(ctx, w, most)
	})
	if err != nil {
		return err
	}
	return tooMany
}

// fitWindow counts the rows of a window that is too large, up to ExportCountCap, and finds the longest window with the
// same start that would fit. It bisects the ends of buckets, with counts that stop at MaxExportRows + 1. count returns
// the rows of a window and stops at most.
func fitWindow(
	w roomsensor.Window, count func(w roomsensor.Window, most int64) (int64, error),
) (*roomsensor.TooManyRowsError, error) {
	all, err := count(w, roomsensor.ExportCountCap+1)
	if err != nil {
		return nil, err
	}
	limit := w.From.Add(roomsensor.MaxWindow)
	if w.To.Before(limit) {
		limit = w.To
	}
	first := roomsensor.BucketOf(w.From.Add(roomsensor.BucketLength - time.Microsecond))
	end := func(n int) time.Time {
		if to := first.Add(time.Duration(n) * roomsensor.BucketLength); to.Before(limit) {
			return to
		}
		return limit
	}
	steps := int(limit.Sub(first)/roomsensor.BucketLength) + 1
	firstTooLong := sort.Search(steps+1, func(n int) bool {
		if err != nil {
			return false
		}
		var rows int64
		rows, err = count(roomsensor.Window{From: w.From, To: end(n)}, roomsensor.MaxExportRows+1)
		return rows > roomsensor.MaxExportRows
	})
	if err != nil {
		return nil, err
	}
	tooMany := &roomsensor.TooManyRowsError{Rows: int(all)}
	if until := end(firstTooLong - 1); until.After(w.From) {
		tooMany.FitsUntil = &until
	}
	return tooMany, nil
}

// Rows returns the number of readings.
func (e *Export) Rows() int { return e.rows }

// Lines returns the number of distinct buckets, which are the lines of the wide shape; 0 if the query does not ask for
// it.
func (e *Export) Lines() int { return e.lines }

// Each calls do for every reading, by bucket_at, then device_id, while further rows arrive. It stops at the first error
// of do and returns it. do must not keep the row, which is reused. Each needs memory for one slice of the window, see
// sliceRows.
func (e *Export) Each(ctx context.Context, do func(*roomsensor.ExportRow) error) error {
	s := newSlice(e.query.Devices, e.rows, e.store.sliceRows)
	for windows := range slices.Chunk(slicesOf(e.extent, e.rows, e.store.sliceRows), e.slicesAhead()) {
		if err := e.eachSlice(ctx, windows, s, do); err != nil {
			return err
		}
	}
	return nil
}

// maxPipelinedBytes bounds the queries that are sent before their results are read. If they exceeded the buffers of the
// connection, the results would have to be kept in memory until the last query is sent.
const maxPipelinedBytes = 128 << 10

// slicesAhead returns how many slices are queried at once, so that the server works on the next one while one is
// encoded.
func (e *Export) slicesAhead() int {
	const perDevice, perQuery = 20, 100 // Bytes.
	return max(1, maxPipelinedBytes/(perDevice*len(e.query.Devices)+perQuery))
}

// eachSlice sends the queries of some slices at once, and calls do for their rows.
func (e *Export) eachSlice(
	ctx context.Context, windows []roomsensor.Window, s *slice, do func(*roomsensor.ExportRow) error,
) (err error) {
	var batch pgx.Batch
	for _, w := range windows {
		batch.Queue(db.ReadingExport, positional(db.ReadingExportParams{
			DeviceIds: e.query.Devices, TeamID: e.teamID, WindowFrom: w.From, WindowTo: w.To,
		})...)
	}
	results := e.tx.SendBatch(ctx, &batch)
	defer func() {
		if closed := results.Close(); err == nil && closed != nil {
			err = fmt.Errorf("closing an export: %w", translate(closed))
		}
	}()
	for _, w := range windows {
		if err := s.read(results, w); err != nil {
			return err
		}
		if err := s.each(do); err != nil {
			return err
		}
	}
	return nil
}

// Close releases the connection. It may be called at any time.
func (e *Export) Close() {
	// The context of the request may have ended. If the rollback fails, the pool closes the connection.
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if e.tx != nil {
		_ = e.tx.Rollback(ctx)
	}
	e.conn.Release()
}
