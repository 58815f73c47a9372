package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/internal/roomsensor"
)

// defaultSliceRows is the target number of rows of a slice. An export is read in slices of its window, which are sorted
// here: the database would sort all rows on disk before it sends the first, which takes a third of the time of an
// export. Each slice costs a plan and a descent of the index per device.
const defaultSliceRows = 50_000

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
// slice. If rows are distributed unevenly, a slice may have more than sliceRows, at most all of them, which take 8 MB.
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

// slice holds the rows of one slice of an export and is reused for the next one.
type slice struct {
	devices []uuid.UUID // ascending
	ranks   map[uuid.UUID]uint64
	base    time.Time // bucket number 0
	order   []sortKey
	values  []roomsensor.Values
}

// newSlice returns a slice for the devices of an export, ascending and each once, and for its number of rows.
func newSlice(devices []uuid.UUID, rows, sliceRows int) *slice {
	room := min(rows, sliceRows+sliceRows/8) // The slices of a fleet differ by less than an eighth.
	s := &slice{
		devices: devices, ranks: make(map[uuid.UUID]uint64, len(devices)),
		order: make([]sortKey, 0, room), values: make([]roomsensor.Values, 0, room),
	}
	for i, id := range devices {
		s.ranks[id] = uint64(i)
	}
	return s
}

// sortKey packs the number of a row's bucket, the rank of its device and the index of its values, from the highest bits
// to the lowest. Numbers sort several times as fast as rows.
type sortKey uint64

// The widths of the parts of a sortKey: a million rows, 500,000 devices, and with the other 25 bits 320 years of
// buckets.
const (
	indexBits  = 20
	deviceBits = 19
)

func (k sortKey) index() int  { return int(k & (1<<indexBits - 1)) }
func (k sortKey) device() int { return int(k >> indexBits & (1<<deviceBits - 1)) }

func (k sortKey) bucket() time.Duration {
	return time.Duration(k>>(indexBits+deviceBits)) * roomsensor.BucketLength
}

// read reads the next result of a batch, which is that of a window.
func (s *slice) read(results pgx.BatchResults, w roomsensor.Window) error {
	s.base, s.order, s.values = roomsensor.BucketOf(w.From), s.order[:0], s.values[:0]
	rows, err := results.Query()
	if err != nil {
		return fmt.Errorf("starting an export: %w", translate(err))
	}
	defer rows.Close()
	for rows.Next() {
		row := decodeExportRow(rows)
		bucket := uint64(row.BucketAt.Sub(s.base) / roomsensor.BucketLength) //nolint:gosec // Not before the window.
		key := (bucket<<deviceBits|s.ranks[row.DeviceID])<<indexBits | uint64(len(s.values))
		s.order = append(s.order, sortKey(key))
		s.values = append(s.values, row.Values)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("streaming an export: %w", translate(err))
	}
	return nil
}

// each calls do for every row, by bucket_at, then device_id. do must not keep the row, which is reused.
func (s *slice) each(do func(*roomsensor.ExportRow) error) error {
	slices.Sort(s.order)
	var row roomsensor.ExportRow
	for _, key := range s.order {
		row.DeviceID, row.BucketAt, row.Values = s.devices[key.device()], s.base.Add(key.bucket()), s.values[key.index()]
		if err := do(&row); err != nil {
			return err
		}
	}
	return nil
}
