package readings

import (
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
)

// countedBuckets is a table with some rows in each bucket from a time on. It counts the rows that it reads.
type countedBuckets struct {
	from time.Time
	rows []int64
	read int64
}

// fit is ReadingFit.
func (c *countedBuckets) fit(w roomsensor.Window, room, most int64) (rows int64, until time.Time, err error) {
	until = w.To
	for i, n := range c.rows {
		at := c.from.Add(time.Duration(i) * roomsensor.BucketLength)
		if at.Before(w.From) || !at.Before(w.To) {
			continue
		}
		if rows <= room && rows+n > room {
			until = at
		}
		rows += n
	}
	rows = min(rows, most+1)
	c.read += rows
	return rows, until, nil
}

// fits returns the end of the longest window that starts at from, ends by to and has at most MaxExportRows.
func (c *countedBuckets) fits(from, to time.Time) time.Time {
	var rows int64
	for i, n := range c.rows {
		at := c.from.Add(time.Duration(i) * roomsensor.BucketLength)
		if at.Before(from) || !at.Before(to) {
			continue
		}
		if rows += n; rows > roomsensor.MaxExportRows {
			return at
		}
	}
	return to
}

// TestFitWindow compares the window that fits with a sum over all buckets (decision 30). It bounds the rows that are
// read for it: two counts up to ExportCountCap, one per halving of a part, and those that fit.
func TestFitWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		devices := rapid.IntRange(1, 2_000_000).Draw(rt, "devices")
		table := &countedBuckets{from: time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)}
		for range rapid.IntRange(1, 8).Draw(rt, "stretches") { // Of the same number of rows per bucket.
			perBucket := rapid.Int64Range(0, int64(devices)).Draw(rt, "rows per bucket")
			for range rapid.IntRange(1, 4_000).Draw(rt, "buckets") {
				table.rows = append(table.rows, perBucket)
			}
		}
		var total int64
		for _, n := range table.rows {
			total += n
		}
		if total <= roomsensor.MaxExportRows {
			rt.Skip("fits")
		}
		w := roomsensor.Window{From: table.from.Add(-time.Duration(rapid.IntRange(0, 299).Draw(rt, "seconds")) * time.Second)}
		w.To = w.From.AddDate(0, 0, rapid.IntRange(100, 1000).Draw(rt, "days"))
		tooMany, err := fitWindow(w, devices, table.fit)
		require.NoError(rt, err)
		require.EqualValues(rt, min(total, roomsensor.ExportCountCap+1), tooMany.Rows)
		require.LessOrEqual(rt, table.read, int64(2*(roomsensor.ExportCountCap+1)+15*(roomsensor.MaxExportRows+1)))
		if active := slices.Min(table.rows); 4*active >= int64(devices) { // At least a quarter of the devices at all times.
			require.LessOrEqual(rt, table.read, int64(2*(roomsensor.ExportCountCap+1)))
		}
		if want := table.fits(w.From, w.From.Add(roomsensor.MaxWindow)); want.Equal(w.From) {
			require.Nil(rt, tooMany.FitsUntil)
		} else {
			require.Equal(rt, want, *tooMany.FitsUntil)
		}
	})
}

// TestSortKey checks that keys hold the largest export and sort by bucket, then by device.
func TestSortKey(t *testing.T) {
	t.Parallel()
	const lastBucket, lastRank, lastIndex = uint64(longestSlice / roomsensor.BucketLength), roomsensor.MaxExportDevices - 1, roomsensor.MaxExportRows - 1
	for _, k := range [][3]uint64{{0, 0, 0}, {0, lastRank, 0}, {lastBucket, 0, lastIndex}, {lastBucket, lastRank, lastIndex}} {
		key := newSortKey(k[0], k[1], k[2])
		require.EqualValues(t, k[0], key.bucket()/roomsensor.BucketLength)
		require.EqualValues(t, k[1], key.device())
		require.EqualValues(t, k[2], key.index())
	}
	require.Less(t, newSortKey(0, lastRank, lastIndex), newSortKey(1, 0, 0))
	require.Less(t, newSortKey(1, 0, lastIndex), newSortKey(1, 1, 0))
}

// TestSliceMemory checks that the slices of an export use at most 44 bytes per row, and 55 with ingested_at, even if
// nearly all rows are in one of them.
func TestSliceMemory(t *testing.T) {
	t.Parallel()
	const rows = roomsensor.MaxExportRows
	for ingestedAt, most := range map[bool]int{false: 44, true: 55} {
		for _, uneven := range [][]int{{50_000, 50_000, 50_000, 50_000, 50_000}, {1, 1, 1, 1, rows - 4}, {rows - 4, 1, 1, 1, 1}} {
			size := 0
			for _, n := range uneven {
				s := newSlice(newRanks(nil), rows, defaultLimits.SliceRows, ingestedAt)
				for range n {
					s.order, s.values = append(s.order, 0), append(s.values, roomsensor.Values{})
					if ingestedAt {
						s.ingested = append(s.ingested, 0)
					}
				}
				s.trim()
				size += cap(s.order)*int(unsafe.Sizeof(s.order[0])) + cap(s.values)*int(unsafe.Sizeof(s.values[0])) + cap(s.ingested)*8
			}
			require.LessOrEqual(t, size, most*rows, uneven)
		}
	}
}
