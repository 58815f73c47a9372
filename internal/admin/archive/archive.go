// Package archive writes the readings of past months as Parquet files into a directory or an object store, with an
// index of them, for roomsensor reading archive.
//
//	archive.go    which months are written, and their files
//	keys.go       compares a file with the one that it replaces
//	index.go      the index
//	directory.go  files in a directory
//	s3.go         files in an object store
package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/parquetenc"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// Options are what Write archives.
type Options struct {
	Teams []uuid.UUID
	Until time.Time // Months that end later are left out.
	// Deletions also replaces files that have readings which the database does not have any more.
	Deletions bool
	// Progress is called with each month.
	Progress func(text string)
}

// State is what became of a month.
type State string

// The states.
const (
	Written State = "written"
	Kept    State = "kept" // The database lacks readings of the file.
)

// Month is a month of a team that was written, or that has changed and was kept.
type Month struct {
	TeamID   string `json:"team_id"`
	Month    string `json:"month"`
	State    State  `json:"state"`
	Readings int64  `json:"readings"` // in the database
	Missing  int64  `json:"missing"`  // readings of the file before that the database does not have any more
	Bytes    int64  `json:"bytes"`
	Path     string `json:"path"`
}

// Result is what an archive wrote.
type Result struct {
	Written   int     `json:"written"`
	Unchanged int     `json:"unchanged"`
	Kept      int     `json:"kept"`
	Data      []Month `json:"data"`
}

// Files are the files of an archive. Paths are relative, with slashes.
type Files interface {
	// List returns the sizes of all files.
	List(ctx context.Context) (map[string]int64, error)
	// Open opens a file to read, which the caller closes.
	Open(ctx context.Context, path string) (*os.File, error)
	// Create creates a local file that will be stored at a path.
	Create(path string) (*os.File, error)
	// Store stores such a file durably, in place of one that may exist. sum is its SHA-256.
	Store(ctx context.Context, file *os.File, path, sum string) error
}

// monthLayout is the form of a month in paths and in the index.
const monthLayout = "2006-01"

func pathOf(team uuid.UUID, month string) string {
	return fmt.Sprintf("team_id=%s/month=%s/readings.parquet", team, month)
}

type writer struct {
	Options

	store  *store.Store
	files  Files
	index  *index
	result Result
}

// Write writes the months of teams that changed since they were last written, and then the index. The result has what
// was done before an error.
func Write(ctx context.Context, s *store.Store, files Files, o Options) (Result, error) {
	w := &writer{Options: o, store: s, files: files, result: Result{Data: []Month{}}}
	var err error
	if w.index, err = readIndex(ctx, files); err != nil {
		return w.result, err
	}
	for _, team := range o.Teams {
		if err := errors.Join(w.writeTeam(ctx, team), w.index.write(ctx, files)); err != nil {
			return w.result, err
		}
	}
	return w.result, nil
}

func (w *writer) writeTeam(ctx context.Context, team uuid.UUID) error {
	first, err := w.store.FirstReading(ctx, team, w.Until)
	if err != nil {
		return err
	}
	devices, err := w.store.DeviceNames(ctx, team)
	if err != nil {
		return err
	}
	month := roomsensor.Window{To: time.Date(first.Year(), first.Month(), 1, 0, 0, 0, 0, time.UTC)}
	for {
		month = roomsensor.Window{From: month.To, To: month.To.AddDate(0, 1, 0)}
		if month.To.After(w.Until) {
			return nil
		}
		if err := w.writeMonth(ctx, team, devices, month); err != nil {
			return fmt.Errorf("archiving %s: %w", pathOf(team, month.From.Format(monthLayout)), err)
		}
	}
}

// writeMonth writes a month unless its file has it already.
func (w *writer) writeMonth(
	ctx context.Context, team uuid.UUID, devices []roomsensor.NamedDevice, month roomsensor.Window,
) error {
	summary, err := w.store.SummarizeReadings(ctx, team, month)
	if err != nil || summary.Readings == 0 {
		return err
	}
	path := pathOf(team, month.From.Format(monthLayout))
	before, indexed := w.index.entries[path]
	if indexed && before.equals(&summary) {
		w.result.Unchanged++
		return nil
	}
	w.Progress(path)
	file, err := w.files.Create(path)
	if err != nil {
		return err
	}
	defer discard(file)
	written, err := w.encode(ctx, file, team, devices, month)
	if err != nil {
		return err
	}
	var old *os.File
	size, exists := w.index.sizes[path]
	if exists { // Also without an entry: the index is written last.
		opened, err := w.files.Open(ctx, path)
		if err != nil {
			return err
		}
		defer func() { _ = opened.Close() }()
		if _, err := openFile(opened); err == nil || indexed { // Nobody can read a file that is cut off.
			old = opened
		}
	}
	missing, err := written.verify(file, old)
	if err != nil {
		return err
	}
	result := Month{written.TeamID, written.Month, Kept, written.Rows, missing, size, path}
	if missing == 0 || w.Deletions {
		if err := w.files.Store(ctx, file, path, written.SHA256); err != nil {
			return err
		}
		w.index.put(written)
		w.result.Written++
		result.State, result.Bytes = Written, written.Bytes
	} else {
		w.result.Kept++
	}
	w.result.Data = append(w.result.Data, result)
	return nil
}

// discard closes a file that Files.Create created, and removes it unless it was stored under another name.
func discard(file *os.File) {
	_ = file.Close()
	_ = os.Remove(file.Name())
}

// encode writes the file of a month, and returns its entry in the index.
func (w *writer) encode(
	ctx context.Context, file *os.File, team uuid.UUID, devices []roomsensor.NamedDevice, month roomsensor.Window,
) (*Entry, error) {
	e := &Entry{TeamID: team.String(), Month: month.From.Format(monthLayout), WrittenAt: time.Now().UTC()}
	e.Path = pathOf(team, e.Month)
	seen := map[uuid.UUID]bool{}
	sum := sha256.New()
	rows := parquetenc.NewWriter(io.MultiWriter(file, sum), devices,
		parquetenc.Columns{Metrics: roomsensor.Metrics[:], Archive: true})
	err := w.store.EachArchived(ctx, team, month, func(row *roomsensor.ExportRow) error {
		if e.Rows == 0 {
			e.FirstBucketAt = row.BucketAt
		}
		e.Rows, e.LastBucketAt, seen[row.DeviceID] = e.Rows+1, row.BucketAt, true
		if row.IngestedAt.After(e.NewestIngestedAt) {
			e.NewestIngestedAt = row.IngestedAt
		}
		return rows.Write(row)
	})
	if err == nil {
		err = rows.Close()
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("writing a file: %w", err)
	}
	e.Devices, e.Bytes, e.SHA256 = int64(len(seen)), info.Size(), hex.EncodeToString(sum.Sum(nil))
	return e, nil
}

// verify reads the file of an entry, and returns how many readings of the file before are not in it. old is nil if
// there was none.
func (e *Entry) verify(file, old *os.File) (missing int64, err error) {
	if err := checkSum(file, e.SHA256); err != nil {
		return 0, err
	}
	rows, missing, err := compare(keysOf(old), keysOf(file))
	if err == nil && rows != e.Rows {
		err = fmt.Errorf("the file has %d rows instead of %d", rows, e.Rows)
	}
	return missing, err
}

// checkSum compares the content of a file with its SHA-256.
func checkSum(file *os.File, want string) error {
	sum := sha256.New()
	_, err := file.Seek(0, io.SeekStart)
	if err == nil {
		_, err = io.Copy(sum, file)
	}
	if err != nil {
		return fmt.Errorf("reading a file again: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return fmt.Errorf("the file was stored with other content: its SHA-256 is %s instead of %s", got, want)
	}
	return nil
}
