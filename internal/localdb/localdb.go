// Package localdb finds a TimescaleDB for the demo, the tests and the bench, or starts one.
//
// It tries, in this order: a URL that the caller was given, a local PostgreSQL that has the extension, Docker, and on
// Debian and Ubuntu a private copy of Debian's packages. What it starts is left running, listens on 127.0.0.1 alone
// and is found again through its data directory.
package localdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Options says which server is wanted. The zero value is the server of the demo.
type Options struct {
	// URL, when set, is the server to use as it is: nothing is started.
	URL string
	// URLVariable names in messages the environment variable that URL would come from; DATABASE_URL when empty.
	URLVariable string
	// DataDir keeps the data, the port and the password of a server that is started; DefaultDataDir when empty.
	DataDir string
	// Progress receives a line for every step; nil keeps silent.
	Progress io.Writer
	// Settings are parameters of PostgreSQL for a server that has to be started; one that runs keeps its own.
	Settings map[string]string
}

// Server is a TimescaleDB that answers.
type Server struct {
	// URL is what psql takes as it is, of a role that may create databases and extensions.
	URL string
	// How says in a few words where the server comes from.
	How string
	// DataDir keeps its data; empty for a server that somebody else runs.
	DataDir string
	// Started is true when this call started it, false when it ran already or is not ours to stop.
	Started bool
}

// ErrNotRunning is what Find returns for a data directory whose server does not run.
var ErrNotRunning = errors.New("no local TimescaleDB is running, start one with `roomsensor localdb start`")

// Start returns the server of o, and starts it where it does not run yet. Processes that call it at the same moment
// with one data directory end with one server. Where none of the ways works the error names them all.
func Start(ctx context.Context, o Options) (*Server, error) {
	p := &progress{w: o.Progress}
	o.URLVariable = cmp.Or(o.URLVariable, "DATABASE_URL")
	if o.URL != "" {
		return given(ctx, o)
	}
	d, err := openDataDir(o.DataDir)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, d.file("lock"), p)
	if err != nil {
		return nil, err
	}
	defer unlock()

	s, err := d.find(ctx)
	if errors.Is(err, ErrNotRunning) {
		s, err = starter{dir: d, options: o, progress: p}.start(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s, createDatabase(ctx, s.URL)
}

// Find returns the running server of a data directory (DefaultDataDir when empty), or ErrNotRunning.
func Find(ctx context.Context, dir string) (*Server, error) {
	path, err := absolute(dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, ErrNotRunning
	}
	return (&dataDir{path: path}).find(ctx)
}

// Stop ends the server of a data directory (DefaultDataDir when empty) and keeps its data. A server that does not run
// is no error.
func Stop(ctx context.Context, dir string) error {
	return withExisting(ctx, dir, func(d *dataDir) error { return d.stop(ctx) })
}

// Remove ends the server of a data directory and deletes its data.
func Remove(ctx context.Context, dir string) error {
	return withExisting(ctx, dir, func(d *dataDir) error { return d.remove(ctx) })
}

// withExisting calls f under the lock of a data directory, or not at all where there is no such directory.
func withExisting(ctx context.Context, dir string, f func(*dataDir) error) error {
	path, err := absolute(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	d, err := openDataDir(path)
	if err != nil {
		return err
	}
	unlock, err := lock(ctx, d.file("lock"), &progress{})
	if err != nil {
		return err
	}
	defer unlock()
	return f(d)
}

// absolute resolves a data directory as the user gave it.
func absolute(dir string) (string, error) {
	if dir == "" {
		return DefaultDataDir()
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolving the data directory: %w", err)
	}
	return path, nil
}
