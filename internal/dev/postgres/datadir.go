package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"roomsensor/internal/dev/command"
	"roomsensor/internal/dev/filelock"
	"roomsensor/internal/retry"
)

// systemBase is where root keeps the files of this package: PostgreSQL refuses to run as root, and an ordinary user
// has to reach them.
const systemBase = "/var/lib/roomsensor"

// waiting is reported before a process waits for a lock.
const waiting = "waiting for another process that starts or stops the same server"

// base returns the directory of all files that this package creates: ROOMSENSOR_HOME if it is set, otherwise
// /var/lib/roomsensor for root and the user's state directory for anybody else.
func base() (string, error) {
	if home := os.Getenv("ROOMSENSOR_HOME"); home != "" {
		return filepath.Abs(home) //nolint:wrapcheck // It fails only without a working directory, and says so.
	}
	if os.Geteuid() == 0 {
		return systemBase, nil
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "roomsensor"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("no home directory is set: name a directory in ROOMSENSOR_HOME")
	}
	return filepath.Join(home, ".local", "state", "roomsensor"), nil
}

// Dir returns a directory below that of all files that this package creates.
func Dir(elem ...string) (string, error) {
	dir, err := base()
	return filepath.Join(append([]string{dir}, elem...)...), err
}

// image returns the Docker image of TimescaleDB: ROOMSENSOR_TIMESCALEDB_IMAGE if it is set.
func image() string {
	return cmp.Or(os.Getenv("ROOMSENSOR_TIMESCALEDB_IMAGE"), "timescale/timescaledb:2.29.0-pg17")
}

// dataDir is the directory of one server: its data, server.json, its log and its lock.
type dataDir struct{ path string }

// state is the content of server.json: what has to be known to start the server of the directory again.
type state struct {
	// Image is the Docker image of a server in a container. It is empty for a server on the machine itself.
	Image string `json:"image,omitempty"`
	// Bin is the directory of the programs of a server on the machine itself.
	Bin      string `json:"bin,omitempty"`
	How      string `json:"how"`
	Port     int    `json:"port"`
	Password string `json:"password"`
}

// absolute resolves a data directory as the user gave it; empty is that of `roomsensor-dev localdb`.
func absolute(dir string) (string, error) {
	if dir == "" {
		return Dir("localdb")
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolving the data directory: %w", err)
	}
	return path, nil
}

// openDataDir creates the directory if it is missing.
func openDataDir(dir string) (*dataDir, error) {
	path, err := absolute(dir)
	if err != nil {
		return nil, err
	}
	//nolint:gosec // Another user runs the server and has to pass here. Secret files in it have modes of their own.
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	return &dataDir{path: path}, nil
}

func (d *dataDir) file(name string) string { return filepath.Join(d.path, name) }

func (d *dataDir) lock(ctx context.Context, p *command.Progress) (unlock func(), err error) {
	return filelock.Lock(ctx, d.file("lock"), func() { p.Log(waiting) })
}

// load returns nil if the directory never had a server.
func (d *dataDir) load() (*state, error) {
	data, err := os.ReadFile(d.file("server.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // A directory without a server is not an error.
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state of the server: %w", err)
	}
	s := &state{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("reading %s: %w", d.file("server.json"), err)
	}
	return s, nil
}

// save replaces server.json in one step, so that a crash leaves the old state or the new one.
func (d *dataDir) save(s *state) error {
	data, err := json.Marshal(s) //nolint:gosec // The file with the password is readable by its owner only.
	if err != nil {
		return fmt.Errorf("writing the state of the server: %w", err)
	}
	next := d.file("server.json.new")
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return fmt.Errorf("writing the state of the server: %w", err)
	}
	if err := os.Rename(next, d.file("server.json")); err != nil {
		return fmt.Errorf("writing the state of the server: %w", err)
	}
	return nil
}

// find returns the running server, or ErrNotRunning.
func (d *dataDir) find(ctx context.Context) (*Server, error) {
	s, err := d.load()
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, ErrNotRunning
	}
	if err := d.await(ctx, s); err != nil {
		return nil, err
	}
	return &Server{URL: s.url(), How: s.How, DataDir: d.path}, nil
}

// await waits for a server that is starting. It returns ErrNotRunning at once if no process serves the directory.
func (d *dataDir) await(ctx context.Context, s *state) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return retry.Until(ctx, pollInterval, func(ctx context.Context) (bool, error) {
		err := ping(ctx, s.urlOf("postgres")) // The database of s.url is created after the start.
		if err == nil {
			return true, nil
		}
		pid, alive := d.postmaster()
		if !alive {
			return false, ErrNotRunning
		}
		if ctx.Err() != nil {
			return false, fmt.Errorf("PostgreSQL runs in %s as process %d but does not answer, end that process: %w",
				d.path, pid, err)
		}
		return false, nil
	})
}

func (d *dataDir) stop(ctx context.Context) error {
	s, err := d.load()
	if err != nil || s == nil {
		return err
	}
	if s.Image != "" {
		return stopContainer(ctx, d)
	}
	return d.stopPostmaster(ctx)
}

func (d *dataDir) remove(ctx context.Context) error {
	s, err := d.load()
	if err != nil {
		return err
	}
	if err := d.stop(ctx); err != nil {
		return err
	}
	if s != nil && s.Image != "" {
		if err := removeVolume(ctx, d); err != nil {
			return err
		}
	}
	// Only the files of this package, in case the user keeps others here.
	for _, name := range []string{
		"server.json", "server.json.new", "server.log", "server.log.old", "pgdata", "pgdata.new", "lock",
	} {
		if err := os.RemoveAll(d.file(name)); err != nil {
			return fmt.Errorf("removing the data: %w", err)
		}
	}
	_ = os.Remove(d.path) // It stays if something else is in it.
	return nil
}

func newPassword() string { return rand.Text() }
