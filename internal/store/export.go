package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

const (
	// exportStatementTimeout bounds each statement of an export.
	exportStatementTimeout = "30s"
	// exportRowsTimeout bounds the time in which all rows are read.
	exportRowsTimeout = 30 * time.Second
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
// (decision 32). It holds a connection until Each has read the last row, or until Close.
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
	err = e.store.set(ctx, e.tx, "statement_timeout", exportStatementTimeout, "plan_cache_mode", "force_custom_plan")
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
	return nil
}

// measure counts the rows and sets the extent.
func (e *Export) measure(ctx context.Context) error {
	if e.query.Lines {
		return e.countLines(ctx)
	}
	rows, err := e.store.queries.ReadingCount(ctx, e.tx, db.ReadingCountParams{
		DeviceIds: e.query.Devices, TeamID: e.teamID, WindowFrom: e.query.Window.From, WindowTo: e.query.Window.To,
		Most: roomsensor.MaxExportRows + 1,
	})
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

// tooManyRows returns the error of an export that is too large.
func (e *Export) tooManyRows(ctx context.Context) error {
	tooMany, err := fitWindow(e.query.Window, len(e.query.Devices),
		func(w roomsensor.Window, room, most int64) (int64, time.Time, error) {
			fit, err := e.store.queries.ReadingFit(ctx, e.tx, db.ReadingFitParams{
				DeviceIds: e.query.Devices, TeamID: e.teamID, WindowFrom: w.From, WindowTo: w.To,
				Room: room, Most: most + 1,
			})
			return fit.Rows, fit.FitsUntil, err
		})
	if err != nil {
		return err
	}
	return tooMany
}

// Rows returns the number of readings.
func (e *Export) Rows() int { return e.rows }

// Lines returns the number of distinct buckets, which are the lines of the wide shape; 0 if the query does not ask for
// it.
func (e *Export) Lines() int { return e.lines }

// Each calls do for every reading, by bucket_at, then device_id. It stops at the first error of do and returns it. do
// must not keep the row, which is reused. Meanwhile another goroutine reads the other rows and then ends the
// transaction. It never waits for do, because a slow client would keep the snapshot open, and with it every dead row of
// the database. Each needs up to 40 bytes of memory per row, and 8 more with ingested_at.
func (e *Export) Each(ctx context.Context, do func(*roomsensor.ExportRow) error) error {
	ctx, cancel := context.WithTimeout(ctx, e.store.exportRowsTimeout)
	windows := slicesOf(e.extent, e.rows, e.store.sliceRows)
	read, used := make(chan *slice, len(windows)), make(chan *slice, len(windows))
	var failed error
	go func() {
		defer close(read)
		failed = e.read(ctx, windows, read, used)
	}()
	defer func() {
		cancel()
		for range read { // Until the goroutine has ended.
		}
	}()
	for s := range read {
		if err := s.each(do); err != nil {
			return err
		}
		used <- s
	}
	return failed
}

// read sends the rows of each window to read and closes the export. It reuses the slices that it receives from used.
func (e *Export) read(ctx context.Context, windows []roomsensor.Window, read chan<- *slice, used <-chan *slice) error {
	ranks := newRanks(e.query.Devices)
	sql := db.ReadingExport
	if e.query.IngestedAt {
		sql = db.ReadingExportIngested
	}
	for _, w := range windows {
		var s *slice
		select {
		case s = <-used:
		default:
			s = newSlice(ranks, e.rows, e.store.sliceRows, e.query.IngestedAt)
		}
		rows, err := e.tx.Query(ctx, sql, positional(db.ReadingExportParams{
			DeviceIds: e.query.Devices, TeamID: e.teamID, WindowFrom: w.From, WindowTo: w.To,
		})...)
		if err == nil {
			err = s.read(rows, w)
		}
		if err != nil {
			return fmt.Errorf("reading the rows of an export: %w", translate(err))
		}
		read <- s
	}
	e.Close() //nolint:contextcheck // It must also roll back after ctx was canceled.
	return nil
}

// Close releases the connection. It may be called again, but not while Each runs.
func (e *Export) Close() {
	// The context of the request may have ended. If the rollback fails, the pool closes the connection.
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if e.tx != nil {
		_ = e.tx.Rollback(ctx)
	}
	e.conn.Release()
}
