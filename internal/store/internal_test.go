package store

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/store/pg"
)

// These give the tests of package store_test access to what an export and a batch decide by their size.

// SetSliceRows sets the target number of rows of a slice.
func (s *Store) SetSliceRows(n int) { s.sliceRows = n }

// SetStandbyTimes sets how long a read waits for a standby to replay the log, and how long everything else may take.
func (s *Store) SetStandbyTimes(replay, other time.Duration) {
	s.StandbyTimes = pg.StandbyTimes{Connection: other, Replay: replay, Page: other, Export: other}
}

// SetKeep sets for how long everything, and past hours of changed devices, are used for snapshots that are read from
// now on.
func (s *Store) SetKeep(all, past time.Duration) {
	s.keepAll, s.keepPast = all, past
}

// SetMaxHistories sets how many devices have their past hours read in one transaction.
func (s *Store) SetMaxHistories(n int) { s.maxHistories = n }

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

// SetPageTime sets after which time pages of the feed, coverage and aggregates end early.
func (s *Store) SetPageTime(d time.Duration) {
	s.Feed.Limits.Time, s.scans.coverageTime, s.aggregateTime = d, d, d
}

// QueryRow runs a query on the pool for pages.
func (s *Store) QueryRow(t testing.TB, sql string) pgx.Row {
	t.Helper()
	return s.Pool.QueryRow(t.Context(), sql)
}

// SetAggregateTime sets the time after which a page of aggregates ends.
func (s *Store) SetAggregateTime(d time.Duration) { s.aggregateTime = d }

// SetAggregateSizes sets how many buckets of devices are aggregated at once, and how many readings take as long as a
// statement.
func (s *Store) SetAggregateSizes(cells, statementReadings int) {
	s.aggregateCells, s.statementReadings = cells, statementReadings
}

// HoldConnections takes all connections for pages until the test ends.
func (s *Store) HoldConnections(t *testing.T) {
	t.Helper()
	for range s.Pool.Config().MaxConns {
		conn, err := s.Pool.Acquire(t.Context())
		require.NoError(t, err)
		t.Cleanup(conn.Release)
	}
}
