package readings

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// longestSlice bounds the window of a slice, so that the numbers of its buckets fit into a sortKey.
const longestSlice = 100 * 365 * 24 * time.Hour

// sliceableAsIs reports whether rows fill enough of a window to cut it as it is, without a query for the first and the
// last row. A device has at most one row per bucket, so that slices of a window that is at least half full have at most
// 2*sliceRows rows, plus one bucket. Rows that fit into one slice need no cut, unless a sortKey cannot number the
// buckets of the window, such as those of an open assignment. Such a window is never half full either, because an
// export has at most MaxExportRows.
func sliceableAsIs(w roomsensor.Window, devices, rows, sliceRows int) bool {
	length := w.To.Sub(w.From) // At most 292 years, the maximum of a Duration.
	if rows <= sliceRows {
		return rows == 0 || length <= longestSlice
	}
	buckets := int(length/roomsensor.BucketLength) + 1
	return 2*rows >= devices*buckets
}

// slicesOf cuts a window into slices of the same length, which is a whole number of buckets. Without rows there is no
// slice. If rows are distributed unevenly, a slice may have more than sliceRows, at most all of them, which take 10 MB.
func slicesOf(w roomsensor.Window, rows, sliceRows int) []roomsensor.Window {
	if rows == 0 {
		return nil
	}
	n := (rows + sliceRows - 1) / sliceRows
	buckets := min(w.To.Sub(w.From)/time.Duration(n), longestSlice)/roomsensor.BucketLength + 1
	step := buckets * roomsensor.BucketLength //nolint:durationcheck // A count of buckets times their length.
	var windows []roomsensor.Window
	for from := w.From; ; {
		to := from.Add(step)
		if !to.Before(w.To) {
			return append(windows, roomsensor.Window{From: from, To: w.To})
		}
		windows = append(windows, roomsensor.Window{From: from, To: to})
		from = to
	}
}

// ranks numbers the devices of an export, ascending and each once.
type ranks struct {
	devices []uuid.UUID
	of      map[uuid.UUID]uint64
}

func newRanks(devices []uuid.UUID) *ranks {
	r := &ranks{devices: devices, of: make(map[uuid.UUID]uint64, len(devices))}
	for i, id := range devices {
		r.of[id] = uint64(i)
	}
	return r
}

// slice holds the rows of one slice of an export.
type slice struct {
	ranks    *ranks
	base     time.Time // bucket number 0
	order    []sortKey
	values   []roomsensor.Values
	ingested []int64 // ingested_at of each of values, in microseconds since 1970; nil if the export leaves it out
}

// slicePool keeps the memory of slices until the garbage collector needs it. New memory for each slice would cost an
// export 7 % more processor time in the API.
var slicePool = sync.Pool{New: func() any { return &slice{} }}

// newSlice returns a slice of an export with a number of rows.
func newSlice(r *ranks, rows, sliceRows int, ingestedAt bool) *slice {
	room := min(rows, sliceRows+sliceRows/8) // The slices of a fleet differ by less than an eighth.
	s, _ := slicePool.Get().(*slice)
	s.ranks = r
	s.order, s.values, s.ingested = slices.Grow(s.order[:0], room), slices.Grow(s.values[:0], room), nil
	if ingestedAt {
		s.ingested = make([]int64, 0, room)
	}
	return s
}

// release lets other exports use the memory of a slice. The caller must not use it again.
func (s *slice) release() { slicePool.Put(s) }

// sortKey packs the number of a row's bucket, the rank of its device and the index of its values, from the highest bits
// to the lowest. Numbers sort several times as fast as rows.
type sortKey uint64

// The widths of the parts of a sortKey: MaxExportRows, MaxExportDevices, and with the other 24 bits longestSlice.
const (
	indexBits  = 18
	deviceBits = 22
)

func newSortKey(bucket, rank, index uint64) sortKey {
	return sortKey((bucket<<deviceBits|rank)<<indexBits | index)
}

func (k sortKey) index() int  { return int(k & (1<<indexBits - 1)) }
func (k sortKey) device() int { return int(k >> indexBits & (1<<deviceBits - 1)) }

func (k sortKey) bucket() time.Duration {
	return time.Duration(k>>(indexBits+deviceBits)) * roomsensor.BucketLength
}

// read reads and closes the rows of ReadingExport or ReadingExportIngested for a window.
func (s *slice) read(rows pgx.Rows, w roomsensor.Window) error {
	const ingestedAt = 2 + roomsensor.MetricCount // The column that only ReadingExportIngested has.
	defer rows.Close()
	s.base, s.order, s.values, s.ingested = roomsensor.BucketOf(w.From), s.order[:0], s.values[:0], s.ingested[:0]
	base := s.base.UnixMicro()
	var device uuid.UUID
	var rank uint64
	for rows.Next() {
		c := rows.RawValues()
		if id := uuid.UUID(c[0]); id != device { // Rows of a device often follow each other.
			device, rank = id, s.ranks.of[id]
		}
		bucket := uint64(pg.DecodeMicros(c[1])-base) / bucketMicros //nolint:gosec // Not before the window.
		s.order = append(s.order, newSortKey(bucket, rank, uint64(len(s.values))))
		s.values = append(s.values, pg.DecodeValues(c[2:ingestedAt]))
		if s.ingested != nil {
			s.ingested = append(s.ingested, pg.DecodeMicros(c[ingestedAt]))
		}
	}
	s.trim()
	return rows.Err()
}

const bucketMicros = uint64(roomsensor.BucketLength / time.Microsecond)

// trim gives back memory that is not used: if rows are distributed unevenly, all slices together would else have room
// for several times the rows.
func (s *slice) trim() {
	if len(s.order) < cap(s.order)/2 {
		s.order, s.values, s.ingested = slices.Clone(s.order), slices.Clone(s.values), slices.Clone(s.ingested)
	}
}

// each calls do for every row, by bucket_at, then device_id. do must not keep the row, which is reused.
func (s *slice) each(do func(*roomsensor.ExportRow) error) error {
	slices.Sort(s.order)
	var row roomsensor.ExportRow
	for _, key := range s.order {
		row.DeviceID, row.BucketAt = s.ranks.devices[key.device()], s.base.Add(key.bucket())
		row.Values = s.values[key.index()]
		if s.ingested != nil {
			row.IngestedAt = time.UnixMicro(s.ingested[key.index()]).UTC()
		}
		if err := do(&row); err != nil {
			return err
		}
	}
	return nil
}

// decodeExportRow decodes a row of ReadingExport into row, which is faster than a copy of it.
func decodeExportRow(rows pgx.Rows, row *roomsensor.ExportRow) {
	c := rows.RawValues()
	row.DeviceID, row.BucketAt = uuid.UUID(c[0]), pg.DecodeTime(c[1])
	row.Values = pg.DecodeValues(c[2 : 2+roomsensor.MetricCount])
}
