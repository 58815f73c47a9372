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

// TestFitWindowNone checks that no window is offered if one bucket has too many readings already, and that the count
// stops above a million (decision 30).
func TestFitWindowNone(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	const perBucket = roomsensor.MaxExportRows + 1
	tooMany, err := fitWindow(roomsensor.Window{From: from, To: from.AddDate(0, 0, 1)},
		func(w roomsensor.Window, most int64) (int64, error) {
			buckets := (w.To.Sub(from) + roomsensor.BucketLength - 1) / roomsensor.BucketLength
			return min(most, perBucket*int64(buckets)), nil
		})
	require.NoError(t, err)
	require.Equal(t, roomsensor.ExportCountCap+1, tooMany.Rows)
	require.Nil(t, tooMany.FitsUntil)
}
