package parquet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"roomsensor/client"
)

// record is a row of a file of readings.
type record struct {
	BucketAt    int64    `parquet:"bucket_at,timestamp(microsecond),delta"`
	DeviceID    string   `parquet:"device_id,dict"`
	CO2PPM      *float32 `parquet:"co2_ppm,optional"`
	TempC       *float32 `parquet:"temp_c,optional"`
	HumidityPct *float32 `parquet:"humidity_pct,optional"`
	Lux         *float32 `parquet:"lux,optional"`
	SPLDB       *float32 `parquet:"spl_db,optional"`
	IngestedAt  int64    `parquet:"ingested_at,timestamp(microsecond),delta"`
}

func (r *record) compare(o *record) int {
	return cmp.Or(cmp.Compare(r.BucketAt, o.BucketAt), cmp.Compare(r.DeviceID, o.DeviceID))
}

func (r *record) month() string { return time.UnixMicro(r.BucketAt).UTC().Format(monthLayout) }

func recordOf(row *client.DeviceReading) record {
	var metrics [5]*float32
	for i, x := range []*float64{row.CO2PPM, row.TempC, row.HumidityPct, row.Lux, row.SPLDB} {
		if x != nil {
			metrics[i] = new(float32(*x))
		}
	}
	return record{
		row.BucketAt.UnixMicro(), row.DeviceID.String(), metrics[0], metrics[1], metrics[2], metrics[3], metrics[4],
		row.IngestedAt.UnixMicro(),
	}
}

// lastOf removes all but the last of equal records.
func lastOf(records []record) []record {
	kept := records[:0]
	for i := range records {
		if i+1 < len(records) && records[i].compare(&records[i+1]) == 0 {
			continue
		}
		kept = append(kept, records[i])
	}
	return kept
}

func each(records []record) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// deletion is a range of records of a device.
type deletion struct {
	deviceID string
	from, to int64 // as BucketAt
}

func deletionsOf(deleted []client.ReadingDeletion) []deletion {
	ranges := make([]deletion, len(deleted))
	for i, d := range deleted {
		ranges[i] = deletion{d.DeviceID.String(), d.From.UnixMicro(), d.To.UnixMicro()}
	}
	return ranges
}

// deletedMonths returns the months of the store in which ranges may have records.
func (s *Store) deletedMonths(ranges []deletion) (map[string][]record, error) {
	months := map[string][]record{}
	if len(ranges) == 0 {
		return months, nil
	}
	files, err := os.ReadDir(s.path(readingsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for months: %w", err)
	}
	for _, f := range files {
		month := strings.TrimSuffix(f.Name(), ".parquet")
		from, err := time.Parse(monthLayout, month)
		if err != nil {
			return nil, fmt.Errorf("looking for months: %w", err)
		}
		first, end := from.UnixMicro(), from.AddDate(0, 1, 0).UnixMicro()
		if slices.ContainsFunc(ranges, func(d deletion) bool { return d.from < end && d.to > first }) {
			months[month] = nil
		}
	}
	return months, nil
}

// without leaves out the records in ranges.
func without(ranges []deletion, records iter.Seq2[record, error]) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		for r, err := range records {
			gone := slices.ContainsFunc(ranges, func(d deletion) bool {
				return r.BucketAt >= d.from && r.BucketAt < d.to && r.DeviceID == d.deviceID
			})
			if (!gone || err != nil) && !yield(r, err) {
				return
			}
		}
	}
}

// writeMonth leaves ranges out of the file of a month, and merges changes into it. Both are sorted, and a change
// replaces the record with its key.
func (s *Store) writeMonth(
	ctx context.Context, next, month string, gone []deletion, changes iter.Seq2[record, error],
) error {
	name := filepath.Join(readingsName, month+".parquet")
	file, err := create(filepath.Join(next, name))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	w := parquet.NewGenericWriter[record](file, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(groupRows))
	piece := make([]record, 0, pieceRows)
	for r, err := range merge(without(gone, readMonth(s.path(name))), changes) {
		if err == nil && len(piece) == pieceRows {
			_, err = w.Write(piece)
			piece = piece[:0]
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return fmt.Errorf("writing %s: %w", month, err)
		}
		piece = append(piece, r)
	}
	_, err = w.Write(piece)
	if err = errors.Join(err, w.Close(), file.Sync()); err != nil {
		return fmt.Errorf("writing %s: %w", month, err)
	}
	return nil
}

// readMonth returns the records of a file; none if it does not exist.
func readMonth(path string) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		file, err := os.Open(path) //nolint:gosec // The caller chooses the directory.
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				yield(record{}, fmt.Errorf("reading a month: %w", err))
			}
			return
		}
		defer func() { _ = file.Close() }()
		r := parquet.NewGenericReader[record](file)
		defer func() { _ = r.Close() }()
		for {
			piece := make([]record, pieceRows) // A new one, because records have pointers.
			n, err := r.Read(piece)
			for i := range n {
				if !yield(piece[i], nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(record{}, fmt.Errorf("reading %s: %w", path, err))
				return
			}
		}
	}
}

// merge merges sorted records. Of two with the same key, that of changes remains.
func merge(stored, changes iter.Seq2[record, error]) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		next, stop := iter.Pull2(stored)
		defer stop()
		m := &merger{next: next, yield: yield}
		m.advance()
		for change, err := range changes {
			if err != nil {
				yield(record{}, err)
				return
			}
			if !m.before(&change) || !yield(change, nil) {
				return
			}
		}
		m.before(nil)
	}
}

// merger yields stored records.
type merger struct {
	next  func() (record, error, bool)
	yield func(record, error) bool

	old record // the next one to yield
	err error  // in place of old
	ok  bool   // false at the end
}

func (m *merger) advance() { m.old, m.err, m.ok = m.next() }

// before yields the records before a change, or all if it is nil, and skips the one that it replaces. It returns false
// to end.
func (m *merger) before(change *record) bool {
	for ; m.ok; m.advance() {
		order := -1
		if change != nil && m.err == nil {
			order = m.old.compare(change)
		}
		switch {
		case order > 0:
			return true
		case order == 0:
			m.advance()
			return true
		case !m.yield(m.old, m.err) || m.err != nil:
			return false
		}
	}
	return true
}
