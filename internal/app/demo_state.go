package app

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

	"roomsensor/internal/simulate"
)

// demoDir is where a demo keeps everything: the database and the queue, where
// it runs them itself, and what it printed.
type demoDir struct{ path string }

func (d demoDir) file(name string) string { return filepath.Join(d.path, name) }

func (d demoDir) database() string { return d.file("database") }
func (d demoDir) queue() string    { return d.file("nats") }
func (d demoDir) log() string      { return d.file("demo.log") }

// open makes the directory and takes its lock, which the kernel gives back
// when the process ends, however it ends.
func (d demoDir) open() (unlock func(), err error) {
	//nolint:gosec // A database that may not run as root has to pass; what is secret below has a mode of its own.
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return nil, fmt.Errorf("making the demo's directory: %w", err)
	}
	f, err := os.OpenFile(d.file("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the demo's lock: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = refusef("A demo runs on %s already. Use that one, stop it with Ctrl-C, or give this one a directory of "+
			"its own with --data-dir.", d.path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// demoState is what a demo remembers, so that it prints the same keys again.
type demoState struct {
	// Seed and FirstHardwareID make the same rooms and units again.
	Seed            uint64      `json:"seed"`
	FirstHardwareID string      `json:"first_hardware_id"`
	MadeAt          time.Time   `json:"made_at"`
	TeamID          uuid.UUID   `json:"team_id"`
	ReadKey         string      `json:"read_key"`
	ReadWriteKey    string      `json:"read_write_key"`
	IngestKey       string      `json:"ingest_key"`
	Devices         []uuid.UUID `json:"devices"` // in the order of the cast
}

const demoSeed = 11

// newDemoState draws serials that no other demo on the same database has.
func newDemoState(now time.Time) *demoState {
	return &demoState{
		Seed:            demoSeed,
		MadeAt:          now,
		FirstHardwareID: fmt.Sprintf("dev:86%010d001", rand.Uint64N(1e10)), //nolint:gosec // Not a secret.
	}
}

// fleet is the units of the demo: one for each device, and then one for each
// that was replaced.
func (s *demoState) fleet() simulate.Fleet {
	return simulate.Fleet{Seed: s.Seed, Devices: 2 * len(demoCast), FirstHardwareID: s.FirstHardwareID}
}

// replacement is the unit that came into a device later.
func (s *demoState) replacement(i int) string { return s.fleet().HardwareID(len(demoCast) + i) }

// load returns nil where no demo ever got as far as to make a team.
func (d demoDir) load() (*demoState, error) {
	text, err := os.ReadFile(d.file("demo.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // No state is no error.
	}
	if err != nil {
		return nil, fmt.Errorf("reading the demo's state: %w", err)
	}
	s := &demoState{}
	if err := json.Unmarshal(text, s); err != nil || len(s.Devices) != len(demoCast) {
		return nil, refusef("%s is damaged or of another version. Run the demo with --reset to begin anew.",
			d.file("demo.json"))
	}
	return s, nil
}

// save writes the state in one step, readable by its owner alone.
func (d demoDir) save(s *demoState) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the demo's state: %w", err)
	}
	next := d.file("demo.json.new")
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return fmt.Errorf("writing the demo's state: %w", err)
	}
	if err := os.Rename(next, d.file("demo.json")); err != nil {
		return fmt.Errorf("writing the demo's state: %w", err)
	}
	return nil
}

// forget makes the next start the first one.
func (d demoDir) forget() error {
	if err := os.Remove(d.file("demo.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the demo's state: %w", err)
	}
	return nil
}
