package store

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// These give the tests of package store_test access to what an export and a batch decide by their size.

// Slices returns the windows in which an export is read.
func Slices(opened OpenedExport) []roomsensor.Window {
	e := opened.(*Export)
	return slicesOf(e.extent, e.rows, e.store.sliceRows)
}

// SetSliceRows sets the target number of rows of a slice.
func (s *Store) SetSliceRows(n int) { s.sliceRows = n }

// SetMinCopyRows sets from how many rows on a batch is copied.
func (s *Store) SetMinCopyRows(n int) { s.minCopyRows = n }

// SetExportRowsTimeout sets the time in which all rows of an export must be read.
func (s *Store) SetExportRowsTimeout(d time.Duration) { s.exportRowsTimeout = d }

// SetCoverageLimits sets how many buckets a statement and a page of coverage read, and in which time.
func (s *Store) SetCoverageLimits(statement, page int, d time.Duration) {
	s.scans.coverageStatement, s.scans.coveragePage, s.scans.coverageTime = statement, page, d
}

// SetGapLimits sets how many readings a statement and a page of gaps read.
func (s *Store) SetGapLimits(statement, page int) {
	s.scans.gapStatement, s.scans.gapPage = statement, page
}

// PurgeFeedAt purges the change feed as at a time.
func (s *Store) PurgeFeedAt(t *testing.T, now time.Time) {
	t.Helper()
	_, err := s.purgeFeed(t.Context(), now)
	require.NoError(t, err)
}

// SetFeedLimits sets the readings that one statement of a round looks at, and the time after which a page ends.
func (s *Store) SetFeedLimits(candidates int, time time.Duration) {
	s.feedCandidates, s.feedTime = candidates, time
}

// QueryRow runs a query on the pool for pages.
func (s *Store) QueryRow(t testing.TB, sql string) pgx.Row {
	t.Helper()
	return s.pool.QueryRow(t.Context(), sql)
}

// WriteInTx stores rows in a transaction that a worker began, and leaves it open.
func WriteInTx(ctx context.Context, tx pgx.Tx, rows []roomsensor.DeviceMeasurement) error {
	s := &Store{queries: db.New(), minCopyRows: defaultMinCopyRows}
	_, err := s.writeBatch(ctx, tx, roomsensor.Batch{Rows: rows})
	return err
}

// SetAggregateTime sets the time after which a page of aggregates ends.
func (s *Store) SetAggregateTime(d time.Duration) { s.aggregateTime = d }

// CountAggregateLines counts the lines of an export of aggregates as it is done for one that may be too large.
func (s *Store) CountAggregateLines(
	ctx context.Context, teamID uuid.UUID, q roomsensor.AggregateExportQuery,
) (lines int, err error) {
	err = s.inSnapshot(ctx, "counting aggregates", func(tx pgx.Tx) error {
		a := &aggregation{store: s, tx: tx, teamID: teamID, window: q.Window}
		if err := a.begin(ctx, q.Devices, q.Now); err != nil {
			return err
		}
		q.Devices = a.devices
		lines, err = (&AggregateExport{query: q, expected: a.expected}).countLines(ctx, a, q.Window)
		return err
	})
	return lines, err
}

// SetAggregateSizes sets how many buckets of devices are aggregated at once, and how many readings take as long as a
// statement.
func (s *Store) SetAggregateSizes(cells, statementReadings int) {
	s.aggregateCells, s.statementReadings = cells, statementReadings
}

// HoldConnections takes all connections for pages until the test ends.
func (s *Store) HoldConnections(t *testing.T) {
	t.Helper()
	for range s.pool.Config().MaxConns {
		conn, err := s.pool.Acquire(t.Context())
		require.NoError(t, err)
		t.Cleanup(conn.Release)
	}
}
