package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/internal/roomsensor"
)

// sliceRows is how many rows a slice of an export should have. The database
// would sort all rows of an export before it sends the first, on disk, in a
// third of the time of the export; a slice is sorted here, where its rows pass
// anyway. Each slice costs a plan and a descent of the index for each device.
const sliceRows = 50_000

// longestSlice keeps the numbers of a slice's buckets within a sortKey.
const longestSlice = 100 * 365 * 24 * time.Hour

// fills reports whether rows of some devices lie in a window so that it can be
// cut as it is, without a look at where its first and its last row are. A device
// has one row a bucket at most: of a window that is half full a slice has at
// most twice sliceRows, and one bucket more. What fits one slice needs no cut,
// but where a sortKey could not number the window's buckets, such as those of an
// assignment without an end. That one is never half full either: at most
// MaxExportRows rows are to be cut.
func fills(w roomsensor.Window, devices, rows int) bool {
	length := w.To.Sub(w.From) // Of a window of more than 292 years as much as a Duration holds.
	if rows <= sliceRows {
		return rows == 0 || length <= longestSlice
	}
	buckets := int(length/roomsensor.BucketLength) + 1
	return 2*rows >= devices*buckets
}

// slicesOf cuts a window into slices of the same length, which is a number of
// whole buckets; without rows there are none. Where rows lie unevenly a slice
// may have more than sliceRows, at most all of them, which take 8 MB.
func slicesOf(w roomsensor.Window, rows int) []roomsensor.Window {
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

// slice holds the rows of a part of an export's window. It is used for one part
// after the other.
type slice struct {
	devices []uuid.UUID // ascending
	ranks   map[uuid.UUID]uint64
	base    time.Time // the bucket from which buckets are counted
	order   []sortKey
	values  []roomsensor.Values
}

// newSlice takes the devices of an export in ascending order, each once, and how
// many rows it has.
func newSlice(devices []uuid.UUID, rows int) *slice {
	room := min(rows, sliceRows+sliceRows/8) // What slices of a fleet vary by.
	s := &slice{
		devices: devices, ranks: make(map[uuid.UUID]uint64, len(devices)),
		order: make([]sortKey, 0, room), values: make([]roomsensor.Values, 0, room),
	}
	for i, id := range devices {
		s.ranks[id] = uint64(i)
	}
	return s
}

// sortKey is the number of a row's bucket, the rank of its device, and the place
// of its values: numbers sort several times as fast as rows.
type sortKey uint64

// The widths of the parts of a key: a million rows, 500,000 devices, 320 years.
const (
	placeBits  = 20
	deviceBits = 19
)

func (k sortKey) place() int  { return int(k & (1<<placeBits - 1)) }
func (k sortKey) device() int { return int(k >> placeBits & (1<<deviceBits - 1)) }

func (k sortKey) bucket() time.Duration {
	return time.Duration(k>>(placeBits+deviceBits)) * roomsensor.BucketLength
}

// read reads the next result of a batch, whose rows are of a window.
func (s *slice) read(results pgx.BatchResults, w roomsensor.Window) error {
	s.base, s.order, s.values = roomsensor.BucketOf(w.From), s.order[:0], s.values[:0]
	rows, err := results.Query()
	if err != nil {
		return fmt.Errorf("starting an export: %w", translate(err))
	}
	defer rows.Close()
	for rows.Next() {
		row := rawExportRow(rows)
		bucket := uint64(row.BucketAt.Sub(s.base) / roomsensor.BucketLength) //nolint:gosec // Not before the window.
		key := (bucket<<deviceBits|s.ranks[row.DeviceID])<<placeBits | uint64(len(s.values))
		s.order = append(s.order, sortKey(key))
		s.values = append(s.values, row.Values)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("streaming an export: %w", translate(err))
	}
	return nil
}

// each calls a function for every row by bucket_at, then device_id.
func (s *slice) each(do func(*roomsensor.ExportRow) error) error {
	slices.Sort(s.order)
	var row roomsensor.ExportRow // One for all: do may not keep it.
	for _, key := range s.order {
		row.DeviceID, row.BucketAt, row.Values = s.devices[key.device()], s.base.Add(key.bucket()), s.values[key.place()]
		if err := do(&row); err != nil {
			return err
		}
	}
	return nil
}
