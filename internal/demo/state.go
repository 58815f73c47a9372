package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
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
	f, err := os.OpenFile(d.file("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the demo: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = process.Refusef("A demo already runs on %s. Use that one, stop it with Ctrl-C, or give this one another "+
			"directory with --data-dir.", d.path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
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

// hasKeys returns false if a key has no checksum: version 0.1.0 created such keys.
func (s *state) hasKeys() bool {
	_, _, read := roomsensor.ParseKey(roomsensor.APIKey, s.ReadKey)
	_, _, readWrite := roomsensor.ParseKey(roomsensor.APIKey, s.ReadWriteKey)
	_, _, ingest := roomsensor.ParseKey(roomsensor.IngestKey, s.IngestKey)
	return read && readWrite && ingest
}

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
	if err := json.Unmarshal(text, s); err != nil || len(s.Devices) != len(demoDevices) || !s.hasKeys() {
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
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return fmt.Errorf("writing the state of the demo: %w", err)
	}
	if err := os.Rename(next, d.file("demo.json")); err != nil {
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
