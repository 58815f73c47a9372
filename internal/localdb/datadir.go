package localdb

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// dataDir is a directory with one server: its data, what has to be remembered of it, its log and a lock.
type dataDir struct{ path string }

// state is what a data directory remembers of its server, in server.json.
type state struct {
	// Image is the Docker image of a server in a container; empty for one that runs on the machine itself.
	Image string `json:"image,omitempty"`
	// Bin holds the programs of a server on the machine itself.
	Bin      string `json:"bin,omitempty"`
	How      string `json:"how"`
	Port     int    `json:"port"`
	Password string `json:"password"`
}

// openDataDir makes the directory (DefaultDataDir when empty) where it is missing.
func openDataDir(dir string) (*dataDir, error) {
	path, err := absolute(dir)
	if err != nil {
		return nil, err
	}
	//nolint:gosec // Another user runs the server: it has to pass here. What is secret below has modes of its own.
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	return &dataDir{path: path}, nil
}

func (d *dataDir) file(name string) string { return filepath.Join(d.path, name) }

// load returns nil where no server was ever made.
func (d *dataDir) load() (*state, error) {
	data, err := os.ReadFile(d.file("server.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // No server is no error.
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

// save writes the state in one step, so that a crash leaves the old one or the new one.
func (d *dataDir) save(s *state) error {
	data, err := json.Marshal(s) //nolint:gosec // The password is for nobody else, and neither is the file.
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
	if err := d.answer(ctx, s); err != nil {
		return nil, err
	}
	return &Server{URL: s.url(), How: s.How, DataDir: d.path}, nil
}

// answer waits for a server that is starting, or returns ErrNotRunning at once.
func (d *dataDir) answer(ctx context.Context, s *state) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := ping(ctx, s.urlOf("postgres")) // The database of s.url is made once the server answers.
		if err == nil {
			return nil
		}
		pid, alive := d.postmaster()
		if !alive {
			return ErrNotRunning
		}
		if pause(ctx, pollInterval) != nil {
			return fmt.Errorf("PostgreSQL runs in %s as process %d but does not answer, end that process: %w",
				d.path, pid, err)
		}
	}
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
	// Only what this package made, in case the user keeps other files here.
	for _, name := range []string{
		"server.json", "server.json.new", "server.log", "server.log.old", "pgdata", "pgdata.new", "lock",
	} {
		if err := os.RemoveAll(d.file(name)); err != nil {
			return fmt.Errorf("removing the data: %w", err)
		}
	}
	_ = os.Remove(d.path) // Stays when something else is in it.
	return nil
}

func newPassword() string { return rand.Text() }
