package export

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"roomsensor/client"
)

// download downloads parts until none is left.
func (r *runner) download(ctx context.Context) error {
	for {
		w, group, ok := r.state.next(ctx)
		if !ok {
			return ctx.Err()
		}
		if err := r.attempts(ctx, w, group); err != nil {
			return err
		}
	}
}

// attempts downloads one part, or divides its segment. It repeats attempts that fail temporarily, until no part of the
// whole export was completed for the patience of the options.
func (r *runner) attempts(ctx context.Context, w *work, group int) error {
	for attempt := 0; ; attempt++ {
		p, err := r.fetch(ctx, w.segment, group)
		if err == nil {
			if err := r.journal.append(entry{Part: p}); err != nil {
				return err
			}
			r.state.completed(w, p)
			r.report(nil)
			return nil
		}
		what, rows, pause := remedyFor(err)
		switch {
		case what == giveUp, ctx.Err() != nil:
			return partError(w.segment, err)
		case what == divide:
			return r.divide(w, rows, err)
		case r.state.idle() > r.options.Patience:
			return fmt.Errorf("no request succeeded for %s. The last error was: %w", r.options.Patience, err)
		}
		r.report(err)
		if err := wait(ctx, max(pause, delay(attempt))); err != nil {
			return err
		}
	}
}

// partError adds the window of a part to its error.
func partError(s segment, err error) error {
	return fmt.Errorf("exporting %s to %s: %w", s.From.Format(time.RFC3339), s.To.Format(time.RFC3339), err)
}

// divide replaces a segment that has too many readings.
func (r *runner) divide(w *work, rows int, cause error) error {
	into := w.split(r.plan.Devices, rows)
	if into == nil || len(r.plan.Groups) > 1 {
		return partError(w.segment, cause)
	}
	e := &split{From: w.From, Into: into}
	if err := r.journal.append(entry{Split: e}); err != nil {
		return err
	}
	r.state.divided(e)
	r.report(nil)
	return nil
}

// fetch downloads one part into its file, which appears under its name once it is complete and on disk.
func (r *runner) fetch(ctx context.Context, s segment, group int) (p *part, err error) {
	body, err := r.request(ctx, s, group)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // It was read to its end, or is of no use.
	path := partPath(r.dir, s.From, group)
	file, err := os.Create(path + ".new") //nolint:gosec // The caller chooses the directory.
	if err != nil {
		return nil, &localError{fmt.Errorf("creating a part: %w", err)}
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // Makes room on a full disk.
		}
	}()
	sum := sha256.New()
	rows, size, err := r.receive(file, io.TeeReader(body, sum))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if rows != int64(body.Rows) {
		return nil, fmt.Errorf("%w: it has %d rows of %d", client.ErrTruncated, rows, body.Rows)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return nil, &localError{fmt.Errorf("storing a part: %w", err)}
	}
	if err := syncDir(r.dir); err != nil {
		return nil, &localError{err}
	}
	return &part{From: s.From, Group: group, Rows: rows, Bytes: size, Sum: sum.Sum(nil)}, nil
}

// receive copies a body into a file and waits until it is on disk. It returns the number of rows.
func (r *runner) receive(file *os.File, body io.Reader) (rows, size int64, err error) {
	counter := &recordCounter{}
	to := io.MultiWriter(localWriter{file}, counter)
	if r.plan.Request.Format == Parquet {
		to = localWriter{file}
	}
	size, err = io.Copy(to, body)
	if err != nil {
		return 0, 0, fmt.Errorf("storing a part: %w", err)
	}
	if err := file.Sync(); err != nil {
		return 0, 0, &localError{fmt.Errorf("storing a part: %w", err)}
	}
	if r.plan.Request.Format == Parquet {
		rows, err = parquetRowCount(file, size)
		return rows, size, err
	}
	if counter.records == 0 || counter.open() {
		return 0, 0, fmt.Errorf("%w: it ends within a line", client.ErrTruncated)
	}
	return counter.records - 1, size, nil // Without the header row.
}

// localWriter marks the errors of a writer as those of this machine.
type localWriter struct{ io.Writer }

func (w localWriter) Write(text []byte) (int, error) {
	n, err := w.Writer.Write(text)
	if err != nil {
		err = &localError{err}
	}
	return n, err
}

// recordCounter counts the records of a CSV. A line end within quotes does not end a record.
type recordCounter struct {
	records int64
	quoted  bool
	rest    bool // something follows the last record
}

func (c *recordCounter) Write(text []byte) (int, error) {
	for rest := text; len(rest) > 0; {
		piece, _, found := bytes.Cut(rest, []byte{'"'})
		if !c.quoted {
			c.records += int64(bytes.Count(piece, []byte{'\n'}))
		}
		rest = rest[len(piece):]
		if found {
			c.quoted, rest = !c.quoted, rest[1:]
		}
	}
	if len(text) > 0 {
		c.rest = text[len(text)-1] != '\n'
	}
	return len(text), nil
}

// open reports whether the text ends within a record.
func (c *recordCounter) open() bool { return c.quoted || c.rest }

// partPath returns the path of the file of a part.
func partPath(dir string, from time.Time, group int) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%d.part", from.UTC().Format("20060102T150405.000000"), group))
}

const (
	firstDelay   = time.Second
	longestDelay = 30 * time.Second
)

// delay returns how long to wait after a failed attempt; the first attempt is 0. It doubles, with a random part.
func delay(attempt int) time.Duration {
	d := min(firstDelay<<min(attempt, 10), longestDelay)
	return d/2 + rand.N(d/2) //nolint:gosec // The jitter is not a secret.
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
