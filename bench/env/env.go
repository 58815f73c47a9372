package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"

	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/queue"
	"roomsensor/internal/retry"
	"roomsensor/schema"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

// Settings are those of a small dedicated server with durable commits: fsync and synchronous_commit are on.
func Settings() map[string]string {
	return map[string]string{
		"shared_buffers": "4GB",
		"max_wal_size":   "8GB",
		// A checkpoint during a comparison would slow down only one side.
		"checkpoint_timeout":   "30min",
		"maintenance_work_mem": "512MB",
	}
}

const (
	// connectTimeout is for the first connection to NATS.
	connectTimeout = time.Minute
	pollInterval   = 10 * time.Millisecond
)

// Env is an open environment. The caller closes it.
type Env struct {
	*harness.Env
	Server   *postgres.Server
	Database string // URL of the database of the service
	Pool     *pgxpool.Pool

	settings   map[string]string
	roomsensor string // path of the program
	natsServer string // path of the program
}

// Open builds the programs, starts a database server with some settings and migrates a database. It uses the server at
// databaseURL if that is not empty.
func Open(ctx context.Context, databaseURL string, settings map[string]string, log io.Writer) (e *Env, err error) {
	base, err := harness.NewEnv("", log)
	if err != nil {
		return nil, err
	}
	e = &Env{Env: base, settings: settings}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close(ctx, false))
		}
	}()
	e.Logf("building roomsensor and nats-server")
	if e.roomsensor, err = proctest.Build(ctx, e.Dir, proctest.Roomsensor); err != nil {
		return e, err
	}
	if e.natsServer, err = proctest.Build(ctx, e.Dir, proctest.NATSServer); err != nil {
		return e, err
	}
	e.Server, _, err = e.StartDatabase(ctx, postgres.Options{
		URL: databaseURL, URLVariable: "BENCH_DATABASE_URL", Settings: settings,
	})
	if err != nil {
		return e, err
	}
	if e.Database, err = e.NewDatabase(ctx); err != nil {
		return e, err
	}
	e.Pool, err = e.Connect(ctx, e.Database)
	return e, err
}

// ActiveSettings returns the values on the server, which may be given, of fsync, synchronous_commit and the settings of
// Open.
func (e *Env) ActiveSettings(ctx context.Context) (map[string]string, error) {
	names := slices.AppendSeq([]string{"fsync", "synchronous_commit"}, maps.Keys(e.settings))
	settings := make(map[string]string, len(names))
	for _, name := range names {
		var value string // A server that is given may not know those of an extension.
		if err := e.Pool.QueryRow(ctx, "SELECT coalesce(current_setting($1, true), '')", name).Scan(&value); err != nil {
			return nil, fmt.Errorf("reading the setting %s: %w", name, err)
		}
		settings[name] = value
	}
	return settings, nil
}

// NewDatabase creates and migrates a database, which Close drops.
func (e *Env) NewDatabase(ctx context.Context) (address string, err error) {
	if address, err = e.CreateDatabase(ctx, e.Server.URL); err != nil {
		return "", err
	}
	return address, schema.Up(ctx, address, schema.Layout{})
}

// WithNewDatabase returns the same environment with another database, for whose processes and data Close is
// responsible too.
func (e *Env) WithNewDatabase(ctx context.Context) (other *Env, err error) {
	copied := *e
	if copied.Database, err = e.NewDatabase(ctx); err != nil {
		return nil, err
	}
	copied.Pool, err = e.Connect(ctx, copied.Database)
	return &copied, err
}

// Connect opens a pool, which Close closes. It encodes ids as fast as the service does, so that CopyFrom is a fair
// baseline.
func (e *Env) Connect(ctx context.Context, address string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("reading the database URL: %w", err)
	}
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		pgxuuid.Register(conn.TypeMap())
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("opening a pool: %w", err)
	}
	e.OnClose(func(context.Context) error { pool.Close(); return nil })
	return pool, nil
}

// Start starts a command of roomsensor and waits until it is ready. The queue may be nil.
func (e *Env) Start(ctx context.Context, name string, q *Queue, args ...string) (*harness.Process, error) {
	settings := []string{
		"DATABASE_URL=" + e.Database, "LOG_LEVEL=warn", harness.UnlimitedRequests, harness.UnlimitedBytes,
	}
	if q != nil {
		settings = append(settings, "NATS_URL="+q.URL)
	}
	p, err := e.NewProcess(name, e.roomsensor, settings, args...)
	if err != nil {
		return nil, err
	}
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	e.Logf("%s serves profiles at http://%s/debug/pprof/", name, p.Ops)
	return p, nil
}

// Run runs a command of roomsensor that ends by itself.
func (e *Env) Run(ctx context.Context, args ...string) error {
	s := &harness.Service{Program: e.roomsensor, DatabaseURL: func() string { return e.Database }}
	return s.Command(ctx, nil, args...)
}

// Install compiles a program of another module and returns its path. It needs the network. The program is compiled in a
// module of its own, because its requirements conflict with those of this module.
func (e *Env) Install(ctx context.Context, module, version, program string) (path string, err error) {
	path = filepath.Join(e.Dir, filepath.Base(program))
	if _, err := os.Stat(path); err == nil {
		return path, nil // It is compiled once.
	}
	e.Logf("building %s %s", module, version)
	dir := path + "-module"
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("creating a module for %s: %w", program, err)
	}
	text := fmt.Sprintf("module peer\n\ngo 1.22\n\nrequire %s %s\n", module, version)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("creating a module for %s: %w", program, err)
	}
	//nolint:gosec // The names are constants.
	build := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-o", path, module+"/"+program)
	build.Dir = dir
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", program, err, output)
	}
	return path, nil
}

// Queue is the stream on a NATS server that syncs every message.
type Queue struct {
	*queue.Queue
	URL    string
	Server *proctest.NATS
}

// OpenQueue starts a NATS server and declares the stream.
func (e *Env) OpenQueue(ctx context.Context, name string) (*Queue, error) {
	dir := filepath.Join(e.Dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of the streams: %w", err)
	}
	log, err := e.LogFile(name)
	if err != nil {
		return nil, err
	}
	server, err := proctest.StartNATS(ctx, e.natsServer, dir, log)
	if err != nil {
		return nil, err
	}
	e.OnClose(func(context.Context) error { server.Kill(); return nil })
	conn, err := queue.Connect(server.URL, "bench", zerolog.Nop())
	if err != nil {
		return nil, err
	}
	e.OnClose(func(context.Context) error { conn.Close(); return nil })
	q, err := queue.New(conn, queue.Config{Replicas: 1, MaxBytes: queue.DefaultMaxBytes})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return &Queue{q, server.URL, server}, retry.Until(ctx, pollInterval, func(ctx context.Context) (bool, error) {
		return q.Declare(ctx) == nil, nil
	})
}

// AwaitDrained waits until everything in the stream is stored and acknowledged.
func (q *Queue) AwaitDrained(ctx context.Context) error {
	return retry.Until(ctx, pollInterval, func(ctx context.Context) (bool, error) {
		state, err := q.State(ctx)
		return state.Waiting == 0 && state.Unacknowledged == 0, err
	})
}
