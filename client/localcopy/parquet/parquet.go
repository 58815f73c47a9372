// Package parquet keeps a local copy in a directory of Parquet files.
//
//	DIR/current/readings/2026-11.parquet   the readings of a month (UTC), by bucket_at and device_id
//	DIR/current/devices.parquet            the devices
//	DIR/current/assignments.parquet        the assignments
//	DIR/current/state.json                 how far the copy is
//
// current is a symbolic link. Each commit writes a new directory, in which unchanged files are hard links, and then
// replaces the link: readers and a killed process always find one complete state.
package parquet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"roomsensor/client"
	"roomsensor/client/internal/filelock"
	"roomsensor/client/localcopy"
)

const (
	// batchRows and batchAge limit the changes of one commit. Each commit writes whole months again.
	batchRows = 200_000
	batchAge  = 5 * time.Minute
	// groupRows is the number of rows of a row group.
	groupRows = 128 << 10
	// pieceRows is the number of rows that are read at a time.
	pieceRows = 1024

	currentName     = "current"
	generationStart = ".generation-"
	stateName       = "state.json"
	devicesName     = "devices.parquet"
	assignmentsName = "assignments.parquet"
	readingsName    = "readings"
	monthLayout     = "2006-01"
)

// device is a row of the file of devices.
type device struct {
	DeviceID    string  `parquet:"device_id"`
	HardwareID  string  `parquet:"hardware_id"`
	DisplayName *string `parquet:"display_name,optional"`
	Metadata    string  `parquet:"metadata"` // JSON
	LastSeenAt  *int64  `parquet:"last_seen_at,optional,timestamp(microsecond)"`
}

// assignment is a row of the file of assignments.
type assignment struct {
	AssignmentID string  `parquet:"assignment_id"`
	Type         string  `parquet:"type"`
	Label        string  `parquet:"label"`
	HomeOrTravel string  `parquet:"home_or_travel"`
	StartedAt    int64   `parquet:"started_at,timestamp(microsecond)"`
	EndedAt      *int64  `parquet:"ended_at,optional,timestamp(microsecond)"`
	ExternalRef  *string `parquet:"external_ref,optional"`
	DeviceID     string  `parquet:"device_id"`
	DisplayName  *string `parquet:"display_name,optional"`
}

// Store is a directory.
type Store struct {
	dir        string
	generation int
	unlock     func()
}

// Open opens a directory, or creates it. One program at a time may write it.
func Open(dir string) (*Store, error) {
	if runtime.GOOS == "windows" { // Readers would have to follow a symbolic link, which most accounts may not make there.
		return nil, errors.New("a copy in Parquet cannot be kept on Windows. Give a file that ends in .db, for SQLite")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // Like the directories that other programs make.
		return nil, fmt.Errorf("opening %s: %w", dir, err)
	}
	unlock, err := filelock.Try(filepath.Join(dir, ".lock"))
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", dir, err)
	}
	s := &Store{dir: dir, unlock: unlock}
	if err := s.restore(); err != nil {
		unlock()
		return nil, fmt.Errorf("opening %s: %w", dir, err)
	}
	return s, nil
}

// restore finds the current generation and removes the others.
func (s *Store) restore() error {
	target, err := os.Readlink(s.path())
	if err == nil {
		s.generation, err = strconv.Atoi(strings.TrimPrefix(target, generationStart))
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err //nolint:wrapcheck // The caller wraps it.
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), generationStart) && e.Name() != target {
			if err := os.RemoveAll(filepath.Join(s.dir, e.Name())); err != nil {
				return err //nolint:wrapcheck // The caller wraps it.
			}
		}
	}
	return nil
}

// path returns a path in the current generation.
func (s *Store) path(names ...string) string {
	return filepath.Join(append([]string{s.dir, currentName}, names...)...)
}

// Close lets other programs write the directory.
func (s *Store) Close() error {
	s.unlock()
	return nil
}

// LoadDir is in the directory.
func (s *Store) LoadDir() string { return filepath.Join(s.dir, ".load") }

// Batch collects changes for five minutes, because a commit writes whole months.
func (*Store) Batch() (changes int, age time.Duration) { return batchRows, batchAge }

// State reads the state.
func (s *Store) State(context.Context) (state localcopy.State, ok bool, err error) {
	text, err := os.ReadFile(s.path(stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return state, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		return state, false, fmt.Errorf("reading %s: %w", s.dir, err)
	}
	return state, true, nil
}

// Commit writes the months of the changes again, and the state.
func (s *Store) Commit(ctx context.Context, changes localcopy.Changes, state localcopy.State) error {
	gone := deletionsOf(changes.Deleted)
	months, err := s.deletedMonths(gone)
	if err != nil {
		return err
	}
	for i := range changes.Rows {
		r := recordOf(&changes.Rows[i])
		months[r.month()] = append(months[r.month()], r)
	}
	return s.replace(func(next string) error {
		for _, month := range slices.Sorted(maps.Keys(months)) {
			records := months[month]
			slices.SortStableFunc(records, func(a, b record) int { return a.compare(&b) })
			if err := s.writeMonth(ctx, next, month, gone, each(lastOf(records))); err != nil {
				return err
			}
		}
		return writeState(next, state)
	})
}

// writeState writes the state, and waits until it is on disk.
func writeState(dir string, state localcopy.State) error {
	text, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encoding the state: %w", err)
	}
	file, err := create(filepath.Join(dir, stateName))
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	return errors.Join(err, file.Sync(), file.Close())
}

// Import writes the rows of one month.
func (s *Store) Import(ctx context.Context, rows iter.Seq2[client.DeviceReading, error]) error {
	next, stop := iter.Pull2(rows)
	defer stop()
	first, err, ok := next()
	if !ok || err != nil {
		return err
	}
	head := recordOf(&first)
	month := head.month()
	records := func(yield func(record, error) bool) {
		for r := head; yield(r, nil); {
			row, err, ok := next()
			if !ok {
				return
			}
			if r = recordOf(&row); err == nil && r.month() != month {
				err = fmt.Errorf("a reading of %s is in the file of %s", r.month(), month)
			}
			if err != nil {
				yield(record{}, err)
				return
			}
		}
	}
	return s.replace(func(next string) error { return s.writeMonth(ctx, next, month, nil, records) })
}

// SetLists writes the files of the lists, and the state.
func (s *Store) SetLists(_ context.Context, lists localcopy.Lists, state localcopy.State) error {
	devices, err := devicesOf(lists.Devices)
	if err != nil {
		return err
	}
	assignments := make([]assignment, len(lists.Assignments))
	for i, a := range lists.Assignments {
		assignments[i] = assignment{
			AssignmentID: a.AssignmentID.String(), Type: string(a.Type), Label: a.Label, HomeOrTravel: string(a.HomeOrTravel),
			StartedAt: a.StartedAt.UnixMicro(), EndedAt: microseconds(a.EndedAt), ExternalRef: a.ExternalRef,
			DeviceID: a.DeviceID.String(), DisplayName: a.DisplayName,
		}
	}
	return s.replace(func(next string) error {
		return errors.Join(writeList(filepath.Join(next, devicesName), devices),
			writeList(filepath.Join(next, assignmentsName), assignments), writeState(next, state))
	})
}

func devicesOf(devices []client.Device) ([]device, error) {
	rows := make([]device, len(devices))
	for i, d := range devices {
		metadata, err := json.Marshal(localcopy.Tags(d))
		if err != nil {
			return nil, fmt.Errorf("encoding metadata: %w", err)
		}
		rows[i] = device{
			DeviceID: d.DeviceID.String(), HardwareID: d.HardwareID, DisplayName: d.DisplayName, Metadata: string(metadata),
			LastSeenAt: microseconds(d.LastSeenAt),
		}
	}
	return rows, nil
}

func microseconds(at *time.Time) *int64 {
	if at == nil {
		return nil
	}
	return new(at.UnixMicro())
}

// writeList writes a file, and waits until it is on disk.
func writeList[T any](path string, rows []T) error {
	file, err := create(path)
	if err != nil {
		return err
	}
	w := parquet.NewGenericWriter[T](file, parquet.Compression(&parquet.Zstd))
	_, err = w.Write(rows)
	return errors.Join(err, w.Close(), file.Sync(), file.Close())
}

// replace makes a new generation the current one. It has the files that write creates, and the others of the last one.
func (s *Store) replace(write func(next string) error) error {
	last := filepath.Join(s.dir, generationStart+strconv.Itoa(s.generation))
	name := generationStart + strconv.Itoa(s.generation+1)
	next := filepath.Join(s.dir, name)
	err := os.RemoveAll(next) // Of a commit that failed.
	if err == nil {
		err = os.MkdirAll(filepath.Join(next, readingsName), 0o755) //nolint:gosec // As in Open.
	}
	if err == nil {
		err = write(next)
	}
	if err == nil {
		err = keepFiles(last, next)
	}
	if err == nil {
		err = s.publish(name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", s.dir, err), os.RemoveAll(next))
	}
	s.generation++
	if err := os.RemoveAll(last); err != nil {
		return fmt.Errorf("removing the last state of %s: %w", s.dir, err)
	}
	return nil
}

// publish replaces the link current, once the generation is on disk.
func (s *Store) publish(name string) error {
	for _, dir := range []string{filepath.Join(s.dir, name, readingsName), filepath.Join(s.dir, name)} {
		if err := syncPath(dir); err != nil {
			return err
		}
	}
	link := filepath.Join(s.dir, "."+currentName)
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err //nolint:wrapcheck // replace wraps it.
	}
	if err := os.Symlink(name, link); err != nil {
		return err //nolint:wrapcheck // replace wraps it.
	}
	if err := os.Rename(link, s.path()); err != nil {
		return err //nolint:wrapcheck // replace wraps it.
	}
	return syncPath(s.dir)
}

// keepFiles links the files of a directory into another one that does not have them.
func keepFiles(last, next string) error {
	err := filepath.WalkDir(last, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == last {
			return fs.SkipAll
		}
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(last, path)
		if err != nil {
			return err //nolint:wrapcheck // The caller wraps it.
		}
		//nolint:gosec // Nobody else writes the directory.
		if err := os.Link(path, filepath.Join(next, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err //nolint:wrapcheck // The caller wraps it.
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keeping unchanged files: %w", err)
	}
	return nil
}

func create(path string) (*os.File, error) {
	file, err := os.Create(path) //nolint:gosec // The caller chooses the directory.
	if err != nil {
		return nil, fmt.Errorf("creating a file: %w", err)
	}
	return file, nil
}

// syncPath waits until a directory is on disk.
func syncPath(path string) error {
	d, err := os.Open(path) //nolint:gosec // The caller chooses the directory.
	if err != nil {
		return fmt.Errorf("opening a directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("writing a directory: %w", err)
	}
	return nil
}
