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
	// exportCountTimeout bounds what runs before the first byte.
	exportCountTimeout = "30s"
	// closeTimeout bounds giving a connection back.
	closeTimeout = 2 * time.Second
)

// Export is a counted set of readings that is about to be streamed. Count and
// rows come from one snapshot (decision 32). It holds a connection until Close.
type Export struct {
	store  *Store
	conn   *pgxpool.Conn
	tx     pgx.Tx
	teamID uuid.UUID
	query  roomsensor.ExportQuery
	rows   int
	lines  int
	extent roomsensor.Window // where the rows lie, or the whole window where that is close enough
}

// Export counts the readings that a query selects. The error is a
// TooManyRowsError when they are more than MaxExportRows (decision 30).
func (s *Store) Export(ctx context.Context, teamID uuid.UUID, q roomsensor.ExportQuery) (*Export, error) {
	conn, err := s.exports.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("getting a connection for an export: %w", translate(err))
	}
	e := &Export{store: s, conn: conn, teamID: teamID, query: q}
	if err := e.begin(ctx); err != nil {
		e.Close() //nolint:contextcheck // It ends also what a cancelled request left.
		return nil, fmt.Errorf("counting an export: %w", translate(err))
	}
	return e, nil
}

func (e *Export) begin(ctx context.Context) (err error) {
	if e.tx, err = e.conn.BeginTx(ctx, snapshot); err != nil {
		return err //nolint:wrapcheck // Export wraps it.
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
	// From here on bytes move at the client's pace, and the API's deadline for
	// progress is what ends a stalled one.
	return e.store.set(ctx, e.tx, "statement_timeout", "0", "idle_in_transaction_session_timeout", "0")
}

// measure counts, and finds the part of the window to cut into slices.
func (e *Export) measure(ctx context.Context) error {
	if e.query.Lines {
		return e.countLines(ctx)
	}
	rows, err := e.count(ctx, e.query.Window, roomsensor.MaxExportRows+1)
	if err != nil {
		return err
	}
	e.rows, e.extent = int(rows), e.query.Window
	if e.rows > roomsensor.MaxExportRows || fills(e.query.Window, len(e.query.Devices), e.rows) {
		return nil
	}
	found, err := e.store.queries.ReadingExtent(ctx, e.tx, db.ReadingExtentParams{
		DeviceIds: e.query.Devices, TeamID: e.teamID, WindowFrom: e.query.Window.From, WindowTo: e.query.Window.To,
	})
	if err != nil {
		return err
	}
	e.narrow(found.FirstAt, found.LastAt)
	return nil
}

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

// narrow sets the extent to that of the first and the last bucket.
func (e *Export) narrow(first, last time.Time) {
	e.extent = e.query.Window.Intersect(roomsensor.Window{From: first, To: last.Add(roomsensor.BucketLength)})
}

func (e *Export) count(ctx context.Context, w roomsensor.Window, most int64) (int64, error) {
	return e.store.queries.ReadingCount(ctx, e.tx, db.ReadingCountParams{
		DeviceIds: e.query.Devices, TeamID: e.teamID, WindowFrom: w.From, WindowTo: w.To, Most: most,
	})
}

// tooManyRows counts on, and looks for the longest window from the same start
// that would fit. Only the grid of buckets matters for its end, so it is
// bisected, with counts that stop early.
func (e *Export) tooManyRows(ctx context.Context) error {
	all, err := e.count(ctx, e.query.Window, roomsensor.ExportCountCap+1)
	if err != nil {
		return err
	}
	from := e.query.Window.From
	limit := from.Add(roomsensor.MaxWindow)
	if e.query.Window.To.Before(limit) {
		limit = e.query.Window.To
	}
	first := roomsensor.BucketOf(from.Add(roomsensor.BucketLength - time.Microsecond))
	end := func(n int) time.Time {
		if to := first.Add(time.Duration(n) * roomsensor.BucketLength); to.Before(limit) {
			return to
		}
		return limit
	}
	steps := int(limit.Sub(first)/roomsensor.BucketLength) + 1
	firstThatDoesNot := sort.Search(steps+1, func(n int) bool {
		if err != nil {
			return false
		}
		var rows int64
		rows, err = e.count(ctx, roomsensor.Window{From: from, To: end(n)}, roomsensor.MaxExportRows+1)
		return rows > roomsensor.MaxExportRows
	})
	if err != nil {
		return err
	}
	refused := &roomsensor.TooManyRowsError{Rows: int(all)}
	if until := end(firstThatDoesNot - 1); until.After(from) {
		refused.FitsUntil = &until
	}
	return refused
}

// Rows is the number of readings.
func (e *Export) Rows() int { return e.rows }

// Lines is the number of distinct buckets, which are the lines of the wide
// shape; 0 where the query does not ask for it.
func (e *Export) Lines() int { return e.lines }

// Each calls a function for every reading, by bucket_at, then device_id, while
// further rows arrive. The function may not keep the row. Its error ends the
// walk and is returned. Memory is that of a slice of the window, see sliceRows.
func (e *Export) Each(ctx context.Context, do func(*roomsensor.ExportRow) error) error {
	s := newSlice(e.query.Devices, e.rows)
	for windows := range slices.Chunk(slicesOf(e.extent, e.rows), e.slicesAhead()) {
		if err := e.eachOf(ctx, windows, s, do); err != nil {
			return err
		}
	}
	return nil
}

// askedAhead is how many bytes of questions go before their answers are read.
// Above what the buffers of the connection hold, the answers would have to be
// kept until the last question is gone.
const askedAhead = 128 << 10

// slicesAhead is how many slices are asked for at once: the server works on the
// next one while one is encoded.
func (e *Export) slicesAhead() int {
	const perDevice, perQuestion = 20, 100 // Bytes.
	return max(1, askedAhead/(perDevice*len(e.query.Devices)+perQuestion))
}

func (e *Export) eachOf(
	ctx context.Context, windows []roomsensor.Window, s *slice, do func(*roomsensor.ExportRow) error,
) (err error) {
	var batch pgx.Batch
	for _, w := range windows {
		// In the order in which ReadingExport numbers its parameters, see db.ReadingExportParams.
		batch.Queue(db.ReadingExport, e.query.Devices, e.teamID, w.From, w.To)
	}
	results := e.tx.SendBatch(ctx, &batch)
	defer func() {
		if closed := results.Close(); err == nil && closed != nil {
			err = fmt.Errorf("ending an export: %w", translate(closed))
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

// Close gives the connection back. It may be called at any point.
func (e *Export) Close() {
	// The request may be over: what is left is to end the transaction, and a
	// connection on which that fails is closed by the pool.
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if e.tx != nil {
		_ = e.tx.Rollback(ctx)
	}
	e.conn.Release()
}
