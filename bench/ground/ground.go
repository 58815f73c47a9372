// Package ground is what the benchmarks stand on: a TimescaleDB and a NATS server of their own, the program as real
// processes, a team with devices, and as many keys as the limiter asks for.
package ground

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"

	"roomsensor/internal/localdb"
	"roomsensor/internal/procs"
	"roomsensor/schema"
)

// Options say where the database comes from.
type Options struct {
	URL      string            // of a server to use instead of one of our own
	Settings map[string]string // of PostgreSQL, above Settings
	Log      io.Writer
}

// Settings are those of a small dedicated server. What is acknowledged is on disk: fsync and synchronous_commit are on.
func Settings() map[string]string {
	return map[string]string{
		"shared_buffers": "4GB",
		"max_wal_size":   "8GB",
		// A checkpoint in the middle would fall on one side of a comparison.
		"checkpoint_timeout":   "30min",
		"maintenance_work_mem": "512MB",
	}
}

// InForce tells Settings, and what keeps acknowledged data, as the server has them: one that was given has its own.
func (g *Ground) InForce(ctx context.Context) (map[string]string, error) {
	names := slices.AppendSeq([]string{"fsync", "synchronous_commit"}, maps.Keys(Settings()))
	settings := make(map[string]string, len(names))
	for _, name := range names {
		var value string
		if err := g.Pool.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value); err != nil {
			return nil, fmt.Errorf("asking for the setting %s: %w", name, err)
		}
		settings[name] = value
	}
	return settings, nil
}

// Ground is open until Close.
type Ground struct {
	Server   *localdb.Server
	Database string // URL of the database of the service
	Pool     *pgxpool.Pool
	Log      io.Writer

	dir        string
	roomsensor string
	natsPath   string

	mu      sync.Mutex
	closers []func() error
}

// Open builds the program, starts the database and migrates it.
func Open(ctx context.Context, o Options) (g *Ground, err error) {
	g = &Ground{Log: o.Log}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	if g.dir, err = os.MkdirTemp("", "roomsensor-bench-"); err != nil {
		return g, fmt.Errorf("making a place for the benchmarks: %w", err)
	}
	g.Push(func() error { return os.RemoveAll(g.dir) })
	if err := g.build(ctx); err != nil {
		return g, err
	}
	if err := g.startServer(ctx, o); err != nil {
		return g, err
	}
	if g.Database, err = g.NewDatabase(ctx); err != nil {
		return g, err
	}
	g.Pool, err = g.Connect(ctx, g.Database)
	return g, err
}

func (g *Ground) build(ctx context.Context) (err error) {
	g.Say("building the program and nats-server")
	if g.roomsensor, err = procs.Build(ctx, g.dir, procs.Roomsensor); err != nil {
		return err
	}
	g.natsPath, err = procs.Build(ctx, g.dir, procs.NATSServer)
	return err
}

func (g *Ground) startServer(ctx context.Context, o Options) (err error) {
	settings := Settings()
	maps.Copy(settings, o.Settings)
	var remove func() error
	g.Server, remove, err = localdb.StartTemporary(ctx, localdb.Options{
		URL: o.URL, URLVariable: "BENCH_DATABASE_URL", Settings: settings, Progress: o.Log,
	})
	if err != nil {
		return fmt.Errorf("starting a database: %w", err)
	}
	g.Push(remove)
	return nil
}

// NewDatabase makes a database and migrates it; Close drops it.
func (g *Ground) NewDatabase(ctx context.Context) (address string, err error) {
	if address, err = g.EmptyDatabase(ctx); err != nil {
		return "", err
	}
	return address, schema.Up(ctx, address, schema.Layout{})
}

// EmptyDatabase makes a database; Close drops it.
func (g *Ground) EmptyDatabase(ctx context.Context) (address string, err error) {
	u, err := url.Parse(g.Server.URL)
	if err != nil {
		return "", fmt.Errorf("reading the server's URL: %w", err)
	}
	name := fmt.Sprintf("bench_%08x", rand.Uint32()) //nolint:gosec // It only has to be another one each time.
	if err := execute(ctx, g.Server.URL, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	g.Push(func() error {
		return execute(context.WithoutCancel(ctx), g.Server.URL, "DROP DATABASE "+name+" WITH (FORCE)")
	})
	u.Path = "/" + name
	return u.String(), nil
}

// Connect opens a pool that Close closes. It writes ids as fast as the service does, so that CopyFrom is a bar.
func (g *Ground) Connect(ctx context.Context, address string) (*pgxpool.Pool, error) {
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
	g.Push(func() error { pool.Close(); return nil })
	return pool, nil
}

func execute(ctx context.Context, address, sql string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("connecting to the server: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("executing %s: %w", sql, err)
	}
	return nil
}

// Say reports progress.
func (g *Ground) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(g.Log, "bench: "+format+"\n", args...) // Progress that cannot be shown stops nothing.
}

// Push adds what Close does.
func (g *Ground) Push(shut func() error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closers = append(g.closers, shut)
}

// Close takes everything down, the last first.
func (g *Ground) Close() (err error) {
	for _, shut := range slices.Backward(g.closers) {
		err = errors.Join(err, shut())
	}
	g.closers = nil
	return err
}

// Dir is a place for what peers need.
func (g *Ground) Dir() string { return g.dir }
