package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"roomsensor/internal/dev/command"
	"roomsensor/internal/dev/filelock"
	"roomsensor/internal/dev/postgres/debian"
)

// Options select a server. The zero value selects the server of the demo.
type Options struct {
	// URL is a server to use as it is. If it is set, nothing is started.
	URL string
	// URLVariable is the environment variable that URL comes from, for messages. The default is DATABASE_URL.
	URLVariable string
	// DataDir keeps the data, the port and the password of a server that is started. The default is that
	// of `roomsensor-dev localdb`.
	DataDir string
	// Progress receives a line per step; nil is silent.
	Progress io.Writer
	// Confirm asks a person before system packages are installed; nil installs them without a question.
	Confirm func(ctx context.Context, question string) (yes bool, err error)
	// Settings are parameters of PostgreSQL for a server that is started. A server that runs already keeps its own.
	Settings map[string]string
}

// Server is a TimescaleDB that accepts connections.
type Server struct {
	// URL is accepted by psql unchanged. Its role may create databases and extensions.
	URL string
	// How says in a few words where the server comes from.
	How string
	// DataDir keeps its data. It is empty for a server of Options.URL.
	DataDir string
	// Started reports whether this call started the server.
	Started bool
}

// ErrNotRunning is what Find returns for a data directory whose server is not running.
var ErrNotRunning = errors.New("no local TimescaleDB is running, start one with `roomsensor-dev localdb start`")

// Start returns the server of o, and starts it if it is not running. Processes that call it at the same time with one
// data directory get one server. If no option works, the error lists them all, each with the reason.
func Start(ctx context.Context, o Options) (*Server, error) {
	p := &command.Progress{W: o.Progress}
	o.URLVariable = cmp.Or(o.URLVariable, "DATABASE_URL")
	if o.URL != "" {
		return checkURL(ctx, o)
	}
	d, err := openDataDir(o.DataDir)
	if err != nil {
		return nil, err
	}
	unlock, err := d.lock(ctx, p)
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

// Find returns the running server of a data directory, or ErrNotRunning.
func Find(ctx context.Context, dir string) (*Server, error) {
	path, err := absolute(dir)
	if err != nil {
		return nil, err
	}
	if !command.Exists(path) {
		return nil, ErrNotRunning
	}
	return (&dataDir{path: path}).find(ctx)
}

// Stop stops the server of a data directory and keeps its data. It is not an error if the
// server is not running.
func Stop(ctx context.Context, dir string) error {
	return withExisting(ctx, dir, func(d *dataDir) error { return d.stop(ctx) })
}

// Remove stops the server of a data directory and deletes its data. Files that this package did not create stay.
func Remove(ctx context.Context, dir string) error {
	return withExisting(ctx, dir, func(d *dataDir) error { return d.remove(ctx) })
}

// Processes returns what serves a data directory: the first process of PostgreSQL, or the name of its container.
// It returns ErrNotRunning if there is no such process. It does not connect to the server.
func Processes(dir string) (postmaster int, container string, err error) {
	d := &dataDir{path: dir}
	s, err := d.load()
	if err != nil {
		return 0, "", err
	}
	if s != nil && s.Image != "" {
		return 0, d.containerName(), nil
	}
	pid, ok := d.postmaster()
	if s == nil || !ok {
		return 0, "", ErrNotRunning
	}
	return pid, "", nil
}

// withExisting calls f with the lock of a data directory. It does nothing if the directory does not exist.
func withExisting(ctx context.Context, dir string, f func(*dataDir) error) error {
	path, err := absolute(dir)
	if err != nil || !command.Exists(path) {
		return err
	}
	d, err := openDataDir(path)
	if err != nil {
		return err
	}
	unlock, err := d.lock(ctx, &command.Progress{})
	if err != nil {
		return err
	}
	defer unlock()
	return f(d)
}

// starter starts a server in a data directory. Its caller holds the lock of the directory.
type starter struct {
	dir      *dataDir
	options  Options
	progress *command.Progress
}

// option is one way to get a server. An error of start says why it does not work on this machine.
type option struct {
	advice string
	start  func(context.Context) (*state, error)
}

// start tries the options in their order. Existing data is served by the option that created it.
func (s starter) start(ctx context.Context) (*Server, error) {
	created, err := s.dir.load()
	if err != nil {
		return nil, err
	}
	if created != nil {
		st, err := s.restart(ctx, created)
		return s.started(st, err)
	}
	return s.try(ctx, s.ways())
}

// try tries options in turn. It reports why each of them failed but the last, whose reason is in the error.
func (s starter) try(ctx context.Context, options []option) (*Server, error) {
	reasons := []string{s.options.URLVariable + " is not set"}
	for i, o := range options {
		st, err := o.start(ctx)
		if err == nil || ctx.Err() != nil {
			return s.started(st, err)
		}
		if i < len(options)-1 {
			s.progress.Log("%v; trying the next option", err)
		}
		reasons = append(reasons, err.Error())
	}
	return nil, s.failure(options, reasons)
}

func (s starter) ways() []option {
	return []option{
		{"install PostgreSQL 15 or later with TimescaleDB 2.19 or later", s.startInstalled},
		{"start Docker, with the image " + image() + " or a registry to pull it from", s.startContainer},
		{
			"on Debian or Ubuntu: run this once as root, or install mmdebstrap, patchelf, debian-archive-keyring and tzdata",
			s.startCopy,
		},
	}
}

// restart starts the server of existing data.
func (s starter) restart(ctx context.Context, created *state) (*state, error) {
	if created.Image != "" {
		st, err := s.runContainer(ctx, created)
		if err != nil {
			return nil, fmt.Errorf("the data of %s is in a Docker volume and needs Docker: %w", s.dir.path, err)
		}
		return st, nil
	}
	in, err := s.installationOf(ctx, created)
	if err != nil {
		return nil, err
	}
	return s.startCluster(ctx, in, created)
}

func (s starter) started(st *state, err error) (*Server, error) {
	if err != nil {
		return nil, fmt.Errorf("starting TimescaleDB: %w", err)
	}
	s.progress.Log("running on 127.0.0.1:%d (%s)", st.Port, st.How)
	return &Server{URL: st.url(), How: st.How, DataDir: s.dir.path, Started: true}, nil
}

// failure lists the options, each with the reason why it does not work here.
func (s starter) failure(options []option, reasons []string) error {
	advice := []string{"set " + s.options.URLVariable + " to a PostgreSQL that preloads TimescaleDB 2.19 or later"}
	for _, o := range options {
		advice = append(advice, o.advice)
	}
	var b strings.Builder
	b.WriteString("no TimescaleDB could be found or started; do one of these:")
	for i := range advice {
		fmt.Fprintf(&b, "\n  %d. %s\n     (now: %s)", i+1, advice[i], reasons[i])
	}
	return errors.New(b.String())
}

// settings returns the parameters of the server. Those of the caller override the ones that every server gets.
func (s starter) settings() map[string]string {
	settings := map[string]string{
		"shared_preload_libraries":    "timescaledb",
		"timescaledb.telemetry_level": "off",
		// TimescaleDB's jobs run beside PostgreSQL's own workers and would use up the default of 8.
		"max_worker_processes": "27",
		// A query locks every chunk that it reads.
		"max_locks_per_transaction": "256",
	}
	maps.Copy(settings, s.options.Settings)
	return settings
}

// startCopy uses a private copy of Debian's packages and makes it first if there is none.
func (s starter) startCopy(ctx context.Context) (*state, error) {
	in, err := s.existingCopy(ctx)
	if err != nil {
		in, err = s.makeCopy(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s.startCluster(ctx, in, nil)
}

// makeCopy makes the private copy, once for all processes that need it at the same time.
func (s starter) makeCopy(ctx context.Context) (*installation, error) {
	dir, err := Dir("timescaledb")
	if err != nil {
		return nil, err
	}
	//nolint:gosec // Another user runs these programs; they are not secret.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("making a private copy of Debian's packages: %w", err)
	}
	unlock, err := filelock.Lock(ctx, dir+".lock", func() { s.progress.Log(waiting) })
	if err != nil {
		return nil, err
	}
	defer unlock()
	if in, err := s.existingCopy(ctx); err == nil { // Another process made it while this one waited.
		return in, nil
	}
	if err := debian.TimescaleDB.Copy(ctx, dir, s.progress, s.options.Confirm); err != nil {
		return nil, err
	}
	return s.existingCopy(ctx)
}
