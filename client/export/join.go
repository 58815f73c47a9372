package export

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// join appends complete segments to the output files, in the order of time.
func (r *runner) join(ctx context.Context) error {
	for {
		w := r.state.toJoin(ctx)
		if w == nil {
			return ctx.Err()
		}
		if err := r.joinSegment(w); err != nil {
			return fmt.Errorf("joining the parts: %w", err)
		}
	}
}

func (r *runner) joinSegment(w *work) error {
	done := r.state.isLast(w)
	if r.plan.Request.Format == Parquet && !done { // A file is written when all of its parts are complete.
		r.state.appended(&joined{File: w.File, Until: w.To})
		return nil
	}
	segments := []*work{w}
	write := func() (*joined, error) { return r.output.appendCSV(w) }
	if r.plan.Request.Format == Parquet {
		segments = r.state.ofFile(w.File)
		write = func() (*joined, error) { return r.output.writeParquet(segments) }
	}
	j, err := write()
	if err != nil {
		return err
	}
	if j.Done = done; done {
		if err := r.writeRecord(j); err != nil {
			return err
		}
	}
	if err := r.journal.append(entry{Joined: j}); err != nil {
		return err
	}
	r.state.appended(j)
	if done {
		if err := r.output.finish(j.File); err != nil {
			return err
		}
	}
	return r.output.removeParts(segments)
}

// output writes the output files.
type output struct {
	plan    *plan
	dir     string // of the parts
	target  string
	replace bool
	joined  map[int]*joined // shared with the state of the export, which only the goroutine of join changes

	file *os.File  // the file that is being written; nil if there is none
	hash hash.Hash // of its content
}

func newOutput(p *plan, options *Options, dir string) *output {
	return &output{plan: p, dir: dir, target: filepath.Clean(options.Output), replace: options.Overwrite}
}

// path returns the path of an output file.
func (o *output) path(file int) string {
	if !o.plan.Request.ByMonth {
		return o.target
	}
	month := o.plan.From
	for _, s := range o.plan.Segments {
		if s.File == file {
			month = s.From
			break
		}
	}
	return filepath.Join(o.target, fmt.Sprintf("readings_%s.%s", month.UTC().Format("2006-01"), o.plan.Request.Format))
}

// workPath returns the path of an output file while it is incomplete.
func (o *output) workPath(file int) string {
	return filepath.Join(o.dir, fmt.Sprintf("joined-%d", file))
}

// checkAbsent returns an error if an output file exists and must not be replaced.
func (o *output) checkAbsent() error {
	if o.replace {
		return nil
	}
	for file := range o.fileCount() {
		if _, err := os.Stat(o.path(file)); !errors.Is(err, fs.ErrNotExist) {
			return RequestError(o.path(file) + " exists. Choose another output, or set Overwrite")
		}
	}
	return nil
}

func (o *output) fileCount() int {
	if len(o.plan.Segments) == 0 {
		return 0
	}
	return o.plan.Segments[len(o.plan.Segments)-1].File + 1
}

// restore continues what an interrupted run wrote. Parts whose files are missing or incomplete are downloaded again.
func (o *output) restore(s *state) error {
	o.joined = s.joined
	for _, w := range s.work {
		if w.From.Before(s.until) {
			continue
		}
		for group, p := range w.parts {
			if p == nil {
				continue
			}
			if info, err := os.Stat(partPath(o.dir, w.From, group)); err != nil || info.Size() != p.Bytes {
				w.parts[group], w.started[group] = nil, false
			}
		}
	}
	for file, j := range s.joined {
		if j.Done {
			if err := o.finish(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// open makes an output file the current one, with exactly the content that is recorded.
func (o *output) open(index int) (*joined, error) {
	j := &joined{File: index}
	if last := o.joined[index]; last != nil {
		*j = *last
	}
	if o.file != nil {
		return j, nil
	}
	var err error
	o.file, err = os.OpenFile(o.workPath(index), os.O_CREATE|os.O_RDWR, 0o644) //nolint:gosec // Like other programs.
	if err != nil {
		return nil, fmt.Errorf("opening the output: %w", err)
	}
	o.hash = sha256.New()
	if len(j.Hash) > 0 {
		err = o.hash.(encoding.BinaryUnmarshaler).UnmarshalBinary(j.Hash) //nolint:forcetypeassert // It documents that.
	}
	info, failed := o.file.Stat()
	if err = errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("opening the output: %w", err)
	}
	if info.Size() < j.Bytes {
		return nil, fmt.Errorf("%s is shorter than it was. Restart the export", o.file.Name())
	}
	if err := o.file.Truncate(j.Bytes); err != nil {
		return nil, fmt.Errorf("opening the output: %w", err)
	}
	if _, err := o.file.Seek(j.Bytes, io.SeekStart); err != nil {
		return nil, fmt.Errorf("opening the output: %w", err)
	}
	return j, nil
}

// appendCSV appends the parts of a segment, and waits until they are on disk.
func (o *output) appendCSV(w *work) (*joined, error) {
	j, err := o.open(w.File)
	if err != nil {
		return nil, err
	}
	counter := &recordCounter{}
	out := bufio.NewWriterSize(io.MultiWriter(o.file, o.hash, counter), 256<<10)
	rows, header, err := o.copyParts(out, w, j)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(out.Flush(), o.file.Sync()); err != nil {
		return nil, fmt.Errorf("writing the output: %w", err)
	}
	if j.Header == "" { // The header row is counted too.
		counter.records--
	}
	if counter.records != rows {
		return nil, fmt.Errorf("the parts from %s on have %d rows on disk, and had %d. Restart the export",
			w.From.Format(time.RFC3339), counter.records, rows)
	}
	size, err := o.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, fmt.Errorf("writing the output: %w", err)
	}
	j.Header, j.Rows, j.Bytes, j.Until = header, j.Rows+rows, size, w.To
	j.Hash, err = o.hash.(encoding.BinaryMarshaler).MarshalBinary() //nolint:forcetypeassert // See open.
	if err != nil {
		return nil, fmt.Errorf("writing the output: %w", err)
	}
	return j, nil
}

// copyParts copies the records of a segment's parts, after the header row in an empty file. It returns the number of
// rows that the parts must have, and the hash of their header row.
func (o *output) copyParts(out io.Writer, w *work, j *joined) (rows int64, header string, err error) {
	sources := make([]*records, len(w.parts))
	for group, p := range w.parts {
		file, err := os.Open(partPath(o.dir, w.From, group))
		if err != nil {
			return 0, "", fmt.Errorf("reading a part: %w", err)
		}
		defer func() { _ = file.Close() }()
		rows += p.Rows
		sources[group] = &records{reader: bufio.NewReaderSize(file, 64<<10)}
		first, err := sources[group].header()
		if err != nil {
			return 0, "", err
		}
		if err := o.checkHeader(first, j.Header, w); err != nil {
			return 0, "", err
		}
		if j.Header == "" && group == 0 {
			if _, err := out.Write(first); err != nil {
				return 0, "", fmt.Errorf("writing the output: %w", err)
			}
		}
		header = headerHash(first)
	}
	if len(sources) == 1 {
		if _, err := io.Copy(out, sources[0].reader); err != nil {
			return 0, "", fmt.Errorf("copying a part: %w", err)
		}
		return rows, header, nil
	}
	return rows, header, merge(out, sources)
}

// checkHeader returns an error if the columns changed since the first part. Columns of the wide shape follow the names
// of the devices.
func (o *output) checkHeader(header []byte, first string, w *work) error {
	if first == "" || headerHash(header) == first {
		return nil
	}
	return RequestError(fmt.Sprintf("The columns changed before the part from %s on, because a device was renamed, "+
		"created or deleted during the export. Begin again: set Restart, and set ColumnIDs, because a rename does not "+
		"change ids", w.From.Format(time.RFC3339)))
}

func headerHash(header []byte) string {
	sum := sha256.Sum256(header)
	return hex.EncodeToString(sum[:8])
}

// merge writes the records of several parts of one segment in the order of their bucket. Parts with the same bucket are
// in the order of their devices already.
func merge(out io.Writer, sources []*records) error {
	for _, s := range sources {
		if err := s.next(); err != nil {
			return err
		}
	}
	for {
		var first []byte
		for _, s := range sources {
			if s.record != nil && (first == nil || bytes.Compare(s.bucket(), first) < 0) {
				first = bytes.Clone(s.bucket())
			}
		}
		if first == nil {
			return nil
		}
		for _, s := range sources {
			if err := s.copyBucket(out, first); err != nil {
				return err
			}
		}
	}
}

// records reads a CSV record by record.
type records struct {
	reader *bufio.Reader
	record []byte // the current one with its line end; nil at the end
}

// header reads the header row.
func (r *records) header() ([]byte, error) {
	if err := r.next(); err != nil {
		return nil, err
	}
	if r.record == nil {
		return nil, errors.New("a part has no header row")
	}
	return bytes.Clone(r.record), nil
}

// next reads a record.
func (r *records) next() error {
	r.record = r.record[:0]
	for quoted := false; ; {
		piece, err := r.reader.ReadSlice('\n')
		r.record = append(r.record, piece...)
		quoted = quoted != (bytes.Count(piece, []byte{'"'})%2 == 1)
		switch {
		case err == nil && !quoted:
			return nil
		case errors.Is(err, io.EOF) && len(r.record) == 0:
			r.record = nil
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("reading a part: %w", err)
		}
	}
}

// copyBucket writes the records of a bucket, and moves behind them.
func (r *records) copyBucket(out io.Writer, bucket []byte) error {
	for r.record != nil && bytes.Equal(r.bucket(), bucket) {
		if _, err := out.Write(r.record); err != nil {
			return fmt.Errorf("writing the output: %w", err)
		}
		if err := r.next(); err != nil {
			return err
		}
	}
	return nil
}

// bucket returns the first cell, bucket_at, which sorts like the time.
func (r *records) bucket() []byte {
	return r.record[:max(0, bytes.IndexAny(r.record, ",;\n"))]
}

// finish moves a complete output file to its name. It does nothing if that has happened already.
func (o *output) finish(index int) error {
	if o.file != nil {
		err := o.file.Close()
		o.file = nil
		if err != nil {
			return fmt.Errorf("closing the output: %w", err)
		}
	}
	err := os.Rename(o.workPath(index), o.path(index))
	if errors.Is(err, fs.ErrNotExist) {
		info, failed := os.Stat(o.path(index))
		if failed == nil && info.Size() == o.joined[index].Bytes {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("moving the output to its name: %w", err)
	}
	return syncDir(filepath.Dir(o.path(index)))
}

// removeParts removes the files of segments that are joined.
func (o *output) removeParts(segments []*work) error {
	for _, w := range segments {
		for group := range w.parts {
			if err := os.Remove(partPath(o.dir, w.From, group)); err != nil {
				return fmt.Errorf("removing a part: %w", err)
			}
		}
	}
	return nil
}

// files returns the complete output files.
func (o *output) files() []File {
	files := make([]File, 0, len(o.joined))
	for index := range o.fileCount() {
		j := o.joined[index]
		sum, err := j.sum()
		if err != nil {
			panic(err) // It was written by this process or verified by open.
		}
		files = append(files, File{o.path(index), j.Rows, j.Bytes, sum})
	}
	return files
}

// sum returns the SHA-256 of an output file.
func (j *joined) sum() (string, error) {
	h := sha256.New()
	if err := h.(encoding.BinaryUnmarshaler).UnmarshalBinary(j.Hash); err != nil { //nolint:forcetypeassert // See open.
		return "", fmt.Errorf("reading the hash of a file: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
