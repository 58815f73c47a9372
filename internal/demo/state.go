package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dev/filelock"
	"roomsensor/internal/process"
	"roomsensor/internal/simulate"
)

// dataDir is the directory in which a demo stores its state, its log, and the database and queue that it starts.
type dataDir struct{ path string }

func (d dataDir) file(name string) string { return filepath.Join(d.path, name) }

func (d dataDir) database() string { return d.file("database") }
func (d dataDir) queue() string    { return d.file("nats") }
func (d dataDir) log() string      { return d.file("demo.log") }

// open creates the directory and takes its lock, which the kernel releases when the process ends.
func (d dataDir) open() (unlock func(), err error) {
	//nolint:gosec // PostgreSQL runs as another user and must enter; files with secrets are 0600.
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return nil, fmt.Errorf("creating the directory of the demo: %w", err)
	}
	unlock, err = filelock.Try(d.file("lock"))
	if errors.Is(err, filelock.ErrHeld) {
		err = process.Refusef("A demo already runs on %s. Use that one, stop it with Ctrl-C, or give this one another "+
			"directory with --data-dir.", d.path)
	}
	return unlock, err
}

// maxLogBytes is the size at which the log starts over. It holds half a day.
const maxLogBytes = 10 << 20

// logFile is a log that starts over when it is full.
type logFile struct {
	*os.File
	size, max int // bytes
}

// createLog creates an empty log.
func createLog(path string, maxBytes int) (*logFile, error) {
	//nolint:gosec // The user chooses the directory.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("creating the log of the demo: %w", err)
	}
	return &logFile{File: f, max: maxBytes}, nil
}

// Write appends a line. It is not safe for concurrent use.
func (l *logFile) Write(line []byte) (int, error) {
	if l.size+len(line) > l.max {
		if err := l.Truncate(0); err != nil {
			return 0, fmt.Errorf("clearing the log of the demo: %w", err)
		}
		l.size = 0
	}
	l.size += len(line)
	return l.File.Write(line) //nolint:wrapcheck // It names the file.
}

// state is what the next run of a demo needs to continue with the same team and keys.
type state struct {
	// Seed and FirstHardwareID determine the rooms and units.
	Seed            uint64      `json:"seed"`
	FirstHardwareID string      `json:"first_hardware_id"`
	MadeAt          time.Time   `json:"made_at"`
	TeamID          uuid.UUID   `json:"team_id"`
	ReadKey         string      `json:"read_key"`
	ReadWriteKey    string      `json:"read_write_key"`
	IngestKey       string      `json:"ingest_key"`
	Devices         []uuid.UUID `json:"devices"` // in the order of demoDevices
}

const demoSeed = 11

// newState returns a state with random hardware ids, so that several demos can use the same database.
func newState(now time.Time) *state {
	return &state{
		Seed:            demoSeed,
		MadeAt:          now,
		FirstHardwareID: fmt.Sprintf("dev:86%010d001", rand.Uint64N(1e10)), //nolint:gosec // Not a secret.
	}
}

// fleet returns the units of the demo: one per device, then one replacement per device, then one that is in no device.
func (s *state) fleet() simulate.Fleet {
	return simulate.Fleet{Seed: s.Seed, Devices: 2*len(demoDevices) + 1, FirstHardwareID: s.FirstHardwareID}
}

// replacement returns the hardware id of the replacement unit of a device.
func (s *state) replacement(i int) string { return s.fleet().HardwareID(len(demoDevices) + i) }

// load returns the state of an earlier run, or nil if no run has created a team yet.
func (d dataDir) load() (*state, error) {
	text, err := os.ReadFile(d.file("demo.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // The first start has no state.
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state of the demo: %w", err)
	}
	s := &state{}
	if err := json.Unmarshal(text, s); err != nil || len(s.Devices) != len(demoDevices) {
		return nil, process.Refusef("%s is damaged or of another version. Run the demo with --reset to start over.",
			d.file("demo.json"))
	}
	return s, nil
}

// save writes the state atomically, readable by its owner only.
func (d dataDir) save(s *state) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the state of the demo: %w", err)
	}
	next := d.file("demo.json.new")
	if err = os.WriteFile(next, text, 0o600); err == nil {
		err = os.Rename(next, d.file("demo.json"))
	}
	if err != nil {
		return fmt.Errorf("writing the state of the demo: %w", err)
	}
	return nil
}

// removeState makes the next start a first start.
func (d dataDir) removeState() error {
	if err := os.Remove(d.file("demo.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the state of the demo: %w", err)
	}
	return nil
}
