package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

// HoldConnections takes all connections for pages until the test ends.
func (s *Store) HoldConnections(t *testing.T) {
	t.Helper()
	for range s.pool.Config().MaxConns {
		conn, err := s.pool.Acquire(t.Context())
		require.NoError(t, err)
		t.Cleanup(conn.Release)
	}
}
