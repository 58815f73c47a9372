package export

import (
	"crypto/sha256"
	"encoding"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/parquet-go/parquet-go"
)

const (
	// groupRows is the number of rows of a row group, as in the files of the service.
	groupRows = 64 << 10
	// batchRows is the number of rows that are written at a time. Pages end between batches only: a batch never ends with
	// a part, so that the file does not depend on how the window was divided.
	batchRows = 512
)

// parquetRowCount returns the number of rows of a complete file.
func parquetRowCount(file *os.File, size int64) (rows int64, err error) {
	f, err := parquet.OpenFile(file, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return 0, fmt.Errorf("reading a part: %w", err)
	}
	return f.NumRows(), nil
}

// writeParquet writes an output file from all of its parts, in the order of time.
func (o *output) writeParquet(segments []*work) (*joined, error) {
	last := segments[len(segments)-1]
	j := &joined{File: last.File, Until: last.To}
	file, err := os.Create(o.workPath(j.File))
	if err != nil {
		return nil, fmt.Errorf("creating the output: %w", err)
	}
	o.file = file // finish closes it.
	sum := sha256.New()
	w := &parquetWriter{out: io.MultiWriter(file, sum), texts: map[string]parquet.Value{}}
	for _, s := range segments {
		if err := w.appendSegment(o.dir, s); err != nil {
			return nil, err
		}
		for _, p := range s.parts {
			j.Rows += p.Rows
		}
	}
	if err := errors.Join(w.close(), file.Sync()); err != nil {
		return nil, fmt.Errorf("writing the output: %w", err)
	}
	if w.rows != j.Rows {
		return nil, fmt.Errorf("the parts have %d rows on disk, and had %d. Restart the export", w.rows, j.Rows)
	}
	if j.Bytes, err = file.Seek(0, io.SeekCurrent); err != nil {
		return nil, fmt.Errorf("writing the output: %w", err)
	}
	j.Hash, err = sum.(encoding.BinaryMarshaler).MarshalBinary() //nolint:forcetypeassert // It documents that.
	if err != nil {
		return nil, fmt.Errorf("writing the output: %w", err)
	}
	return j, nil
}

// parquetWriter writes rows in batches of the same size.
type parquetWriter struct {
	out   io.Writer
	file  *parquet.GenericWriter[any] // nil before the first part, whose columns it takes
	batch []parquet.Row
	texts map[string]parquet.Value // ids and names, which outlive the page from which they were read
	rows  int64
}

// appendSegment writes the parts of a segment.
func (w *parquetWriter) appendSegment(dir string, s *work) (err error) {
	sources := make([]*parquetRows, len(s.parts))
	for group := range s.parts {
		source, failed := openRows(partPath(dir, s.From, group))
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, source.close()) }()
		if err := w.begin(source.file.Schema(), s); err != nil {
			return err
		}
		sources[group] = source
	}
	for first := firstOf(sources); first != nil; first = firstOf(sources) {
		for bucket := first.bucket(); first.row != nil && first.bucket() == bucket; {
			if err := errors.Join(w.write(first.row), first.next()); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstOf returns the part with the next row in the order of bucket_at, or nil at the end of all. Parts with the same
// bucket are in the order of their devices already.
func firstOf(sources []*parquetRows) (first *parquetRows) {
	for _, source := range sources {
		if source.row != nil && (first == nil || source.bucket() < first.bucket()) {
			first = source
		}
	}
	return first
}

// begin creates the file with the columns of its first part, which all parts have.
func (w *parquetWriter) begin(schema *parquet.Schema, s *work) error {
	if w.file == nil {
		w.file = parquet.NewGenericWriter[any](w.out, schema, parquet.Compression(&parquet.Zstd),
			parquet.MaxRowsPerRowGroup(groupRows))
		return nil
	}
	if !parquet.EqualNodes(w.file.Schema(), schema) {
		return fmt.Errorf("the columns changed before the part from %s on. Restart the export", s.From.Format(time.RFC3339))
	}
	return nil
}

// write copies a row into the batch.
func (w *parquetWriter) write(row parquet.Row) error {
	n := len(w.batch)
	if n == cap(w.batch) {
		if err := w.flush(); err != nil {
			return err
		}
		n = 0
	}
	w.batch = w.batch[:n+1]
	w.batch[n] = append(w.batch[n][:0], row...)
	for i, value := range w.batch[n] {
		if value.Kind() == parquet.ByteArray {
			w.batch[n][i] = w.kept(value).Level(value.RepetitionLevel(), value.DefinitionLevel(), value.Column())
		}
	}
	return nil
}

// kept returns a copy of a text.
func (w *parquetWriter) kept(value parquet.Value) parquet.Value {
	text, ok := w.texts[string(value.ByteArray())]
	if !ok {
		text = value.Clone()
		w.texts[string(value.ByteArray())] = text
	}
	return text
}

// flush writes the batch.
func (w *parquetWriter) flush() error {
	if w.batch == nil {
		w.batch = make([]parquet.Row, 0, batchRows)
	}
	n, err := w.file.WriteRows(w.batch)
	w.rows += int64(n)
	w.batch = w.batch[:0]
	if err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

func (w *parquetWriter) close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.file.Close() //nolint:wrapcheck // The caller wraps it.
}

// parquetRows reads a part row by row.
type parquetRows struct {
	path  string
	disk  *os.File
	file  *parquet.File
	rows  parquet.Rows
	piece []parquet.Row
	row   parquet.Row // the current one, valid until next; nil at the end
	index int         // of the next row in piece
}

func openRows(path string) (*parquetRows, error) {
	disk, err := os.Open(path) //nolint:gosec // The caller chooses the directory.
	if err != nil {
		return nil, fmt.Errorf("reading a part: %w", err)
	}
	r := &parquetRows{path: path, disk: disk, piece: make([]parquet.Row, 0, batchRows)}
	info, err := disk.Stat()
	if err == nil {
		r.file, err = parquet.OpenFile(disk, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	}
	if err == nil {
		r.rows = parquet.MultiRowGroup(r.file.RowGroups()...).Rows()
		err = r.next()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", path, err), r.close())
	}
	return r, nil
}

// next moves to the next row.
func (r *parquetRows) next() error {
	if r.index == len(r.piece) {
		n, err := r.rows.ReadRows(r.piece[:cap(r.piece)])
		r.piece, r.index = r.piece[:n], 0
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading %s: %w", r.path, err)
		}
		if n == 0 {
			r.row = nil
			return nil
		}
	}
	r.row = r.piece[r.index]
	r.index++
	return nil
}

// bucket returns bucket_at, the first column.
func (r *parquetRows) bucket() int64 { return r.row[0].Int64() }

func (r *parquetRows) close() error {
	var err error
	if r.rows != nil {
		err = r.rows.Close()
	}
	if err = errors.Join(err, r.disk.Close()); err != nil {
		return fmt.Errorf("closing a part: %w", err)
	}
	return nil
}
