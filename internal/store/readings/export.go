package readings

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/db"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

const (
	// exportStatementTimeout bounds each statement of an export.
	exportStatementTimeout = "30s"
	// closeTimeout bounds the rollback at the end.
	closeTimeout = 2 * time.Second
)

// Export is a set of readings that was counted and is about to be streamed. Count and rows come from one snapshot
// (decision 32). It holds a connection until Each has read the last row, or until Close.
type Export struct {
	store  *Store
	conn   *pgxpool.Conn
	end    func() // of the turn of the team
	tx     pgx.Tx
	teamID uuid.UUID
	query  roomsensor.ExportQuery
	rows   int
	lines  int
	extent roomsensor.Window // contains all rows; the whole window if the rows fill enough of it
	ahead  chan *slice       // all rows, if a standby served them; else nil
}

// OpenExport counts the readings that a query selects. It returns a TooManyRowsError if there are more than
// MaxExportRows (decision 30). If the query only counts, Each calls nothing.
func (s *Store) OpenExport(
	ctx context.Context, teamID uuid.UUID, q roomsensor.ExportQuery,
) (roomsensor.ReadingExport, error) {
	if e, served, err := s.readExport(ctx, teamID, q); err != nil {
		return nil, err
	} else if served {
		return e, nil
	}
	conn, end, err := s.acquireExport(ctx, teamID)
	if err != nil {
		return nil, err
	}
	e := &Export{store: s, conn: conn, end: end, teamID: teamID, query: q}
	if err := e.begin(ctx); err != nil {
		e.Close() //nolint:contextcheck // It must also roll back after ctx was canceled.
		return nil, fmt.Errorf("counting an export: %w", pg.Translate(err))
	}
	return e, nil
}

// readExport reads all rows of an export from a standby before the first is sent. Another server has no snapshot with
// the rows that were counted (decision 32 e), so that an export that was begun could not continue there. served is
// false if the primary has to serve it.
func (s *Store) readExport(
	ctx context.Context, teamID uuid.UUID, q roomsensor.ExportQuery,
) (e *Export, served bool, err error) {
	if !s.HasStandbys() {
		return nil, false, nil
	}
	held, err := s.teamExports.Acquire(ctx, fairshare.Owner{Team: teamID}, 1)
	if err != nil {
		return nil, false, err
	}
	defer held.Release()
	served, err = s.OnStandby(ctx, pg.ForExports, func(ctx context.Context, conn *pgxpool.Conn) error {
		e = &Export{store: s, conn: conn, end: func() {}, teamID: teamID, query: q}
		defer e.Close() //nolint:contextcheck // It must also roll back after ctx was canceled.
		if err := e.begin(ctx); err != nil {
			return err
		}
		windows := e.windows()
		e.ahead = make(chan *slice, len(windows))
		defer close(e.ahead)
		return e.read(ctx, windows, e.ahead)
	})
	if err != nil {
		return nil, served, fmt.Errorf("reading an export: %w", pg.Translate(err))
	}
	return e, served, nil
}

// maxTeamExports is how many exports of a team are read at the same time: each takes a processor here and one in the
// database. The rest of the team's wait before they begin.
func maxTeamExports() int { return max(2, runtime.GOMAXPROCS(0)) }

// acquireExport waits for the turn of an export of a team and for a connection, which it returns. end releases both.
func (s *Store) acquireExport(ctx context.Context, teamID uuid.UUID) (conn *pgxpool.Conn, end func(), err error) {
	held, err := s.teamExports.Acquire(ctx, fairshare.Owner{Team: teamID}, 1)
	if err != nil {
		return nil, nil, err
	}
	if conn, err = s.Exports.Acquire(ctx); err != nil {
		held.Release()
		return nil, nil, fmt.Errorf("acquiring a connection for an export: %w", pg.Translate(err))
	}
	return conn, sync.OnceFunc(func() { conn.Release(); held.Release() }), nil
}

func (e *Export) begin(ctx context.Context) (err error) {
	if e.tx, err = e.conn.BeginTx(ctx, pg.Snapshot); err != nil {
		return err //nolint:wrapcheck // OpenExport wraps it.
	}
	err = e.store.Set(ctx, e.tx, "statement_timeout", exportStatementTimeout, "plan_cache_mode", "force_custom_plan")
	if err != nil {
		return err
	}
	e.query.Devices, err = e.store.Queries.DeviceIDList(ctx, e.tx,
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
	rows, err := e.store.Queries.ReadingCount(ctx, e.tx, db.ReadingCountParams{
		DeviceIds: e.query.Devices, TeamID: e.teamID, WindowFrom: e.query.Window.From, WindowTo: e.query.Window.To,
		ExternalRef: e.query.ExternalRef, Most: roomsensor.MaxExportRows + 1,
	})
	if err != nil {
		return err
	}
	e.rows, e.extent = int(rows), e.query.Window
	if e.query.CountOnly || e.rows > roomsensor.MaxExportRows ||
		sliceableAsIs(e.query.Window, len(e.query.Devices), e.rows, e.store.Limits.SliceRows) {
		return nil
	}
	found, err := e.store.Queries.ReadingGetExtent(ctx, e.tx, db.ReadingGetExtentParams{
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
	counted, err := e.store.Queries.ReadingCountLines(ctx, e.tx, db.ReadingCountLinesParams{
		DeviceIds: e.query.Devices, TeamID: e.teamID, WindowFrom: e.query.Window.From, WindowTo: e.query.Window.To,
		ExternalRef: e.query.ExternalRef, Most: roomsensor.MaxExportRows + 1,
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
			fit, err := e.store.Queries.ReadingFit(ctx, e.tx, db.ReadingFitParams{
				DeviceIds: e.query.Devices, TeamID: e.teamID, WindowFrom: w.From, WindowTo: w.To,
				ExternalRef: e.query.ExternalRef, Room: room, Most: most + 1,
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
	if e.ahead != nil {
		return eachSlice(e.ahead, do)
	}
	ctx, cancel := context.WithTimeout(ctx, e.store.Limits.ExportTime)
	windows := e.windows()
	read := make(chan *slice, len(windows))
	var failed error
	go func() {
		defer close(read)
		failed = e.read(ctx, windows, read)
	}()
	defer func() {
		cancel()
		for range read { // Until the goroutine has ended.
		}
	}()
	if err := eachSlice(read, do); err != nil {
		return err
	}
	return failed
}

// windows returns the parts of the extent that are read one after the other.
func (e *Export) windows() []roomsensor.Window {
	if e.query.CountOnly {
		return nil
	}
	return slicesOf(e.extent, e.rows, e.store.Limits.SliceRows)
}

// eachSlice calls do for the rows of all slices.
func eachSlice(read <-chan *slice, do func(*roomsensor.ExportRow) error) error {
	for s := range read {
		if err := s.each(do); err != nil {
			return err
		}
		s.release()
	}
	return nil
}

// read sends the rows of each window to read and closes the export.
func (e *Export) read(ctx context.Context, windows []roomsensor.Window, read chan<- *slice) error {
	ranks := newRanks(e.query.Devices)
	sql := db.ReadingExport
	if e.query.IngestedAt {
		sql = db.ReadingExportIngested
	}
	for ahead := range slices.Chunk(windows, slicesAhead(len(e.query.Devices))) {
		var batch pgx.Batch
		for _, w := range ahead {
			batch.Queue(sql, pg.Positional(db.ReadingExportParams{
				DeviceIds: e.query.Devices, TeamID: e.teamID, WindowFrom: w.From, WindowTo: w.To,
				ExternalRef: e.query.ExternalRef,
			})...)
		}
		results := e.tx.SendBatch(ctx, &batch)
		err := e.readSlices(results, ranks, ahead, read)
		if closed := results.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return fmt.Errorf("reading the rows of an export: %w", pg.Translate(err))
		}
	}
	e.Close() //nolint:contextcheck // It must also roll back after ctx was canceled.
	return nil
}

// readSlices sends the rows of some windows, whose queries were sent, to read.
func (e *Export) readSlices(
	results pgx.BatchResults, ranks *ranks, windows []roomsensor.Window, read chan<- *slice,
) error {
	for _, w := range windows {
		s := newSlice(ranks, e.rows, e.store.Limits.SliceRows, e.query.IngestedAt)
		rows, err := results.Query()
		if err != nil {
			return err //nolint:wrapcheck // read wraps it.
		}
		if err := s.read(rows, w); err != nil {
			return err
		}
		read <- s
	}
	return nil
}

// slicesAhead returns how many slices are queried at once, so that the server works on the next one while the rows of
// one are decoded. If the queries exceeded the buffers of the connection, the server would wait for the client that
// sends the last query, and the client for the server.
func slicesAhead(devices int) int {
	const buffers, perDevice, perQuery = 128 << 10, 20, 100 // Bytes.
	return max(1, buffers/(perDevice*devices+perQuery))
}

// Close releases the connection. It may be called again, but not while Each runs.
func (e *Export) Close() {
	// The context of the request may have ended. If the rollback fails, the pool closes the connection.
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if e.tx != nil {
		_ = e.tx.Rollback(ctx)
	}
	e.end()
}
