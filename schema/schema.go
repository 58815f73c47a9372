package schema

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"roomsensor/internal/config"
	"roomsensor/internal/retry"
)

// FS contains the migrations.
//
//go:embed *.sql
var FS embed.FS

//go:embed edition/ensure.sql
var ensureEdition string

//go:embed edition/layout.sql
var ensureLayout string

//go:embed edition/chunks.sql
var ensureChunks string

const (
	// lockTimeout bounds the wait for a lock, because every later request queues behind a migration that waits for a
	// long reader. Requests of the API give up after 2s: the wait and the time for which the migration then holds the
	// lock must be shorter.
	lockTimeout = "500ms"
	// A migration that did not get a lock in time is retried every lockRetryInterval, for lockRetryTimeout.
	lockRetryInterval = time.Second
	lockRetryTimeout  = 5 * time.Minute

	stateLockNotAvailable = "55P03"
)

// ErrBeforeFirstRelease means that a build from before the first release created the database. Its migrations had other
// numbers, and none leads from there to this version.
var ErrBeforeFirstRelease = errors.New("a build from before the first release created the database")

// Migration is one migration of this binary.
type Migration struct {
	Version   int64
	Name      string     // file name
	AppliedAt *time.Time // nil: pending
}

// Layout sets how readings are stored. The ages have an effect on the Community edition only; zero means never.
type Layout struct {
	// ChunkInterval is the length of new chunks; zero keeps what it is, 7 days in a new database. It must be whole days,
	// so that every chunk is a day or longer.
	ChunkInterval time.Duration
	// ColumnstoreAfter is the age at which a chunk is converted to columns. It must be longer than any device buffers
	// its readings, because writes to such chunks are slow.
	ColumnstoreAfter time.Duration
	// DropAfter is the age at which a chunk is deleted.
	DropAfter time.Duration
}

// Up applies every pending migration, and then updates what depends on the edition and on the layout. Several processes
// may call it at once: one migrates, the others wait for it.
func Up(ctx context.Context, databaseURL string, layout Layout) error {
	return withProvider(ctx, databaseURL, migrates, func(p *goose.Provider, pool *sql.DB) error {
		return retryLocked(ctx, func() error {
			if _, err := p.Up(ctx); err != nil {
				return fmt.Errorf("applying migrations: %w", err)
			}
			if _, err := pool.ExecContext(ctx, ensureEdition); err != nil {
				return fmt.Errorf("creating readings_hourly for this edition: %w", err)
			}
			_, err := pool.ExecContext(ctx, ensureLayout, seconds(layout.ColumnstoreAfter), seconds(layout.DropAfter))
			if err != nil {
				return fmt.Errorf("setting the policies of this edition: %w", err)
			}
			if layout.ChunkInterval == 0 {
				return nil
			}
			if _, err := pool.ExecContext(ctx, ensureChunks, layout.ChunkInterval.Seconds()); err != nil {
				return fmt.Errorf("setting the length of new chunks: %w", err)
			}
			return nil
		})
	})
}

// seconds returns an age as ensure_readings_layout expects it; never is null.
func seconds(age time.Duration) any {
	if age == 0 {
		return nil
	}
	return age.Seconds()
}

// Status lists the migrations by version, ascending.
func Status(ctx context.Context, databaseURL string) ([]Migration, error) {
	var migrations []Migration
	err := withProvider(ctx, databaseURL, reads, func(p *goose.Provider, _ *sql.DB) error {
		statuses, err := p.Status(ctx)
		if err != nil {
			return fmt.Errorf("reading the status of migrations: %w", err)
		}
		for _, s := range statuses {
			m := Migration{Version: s.Source.Version, Name: s.Source.Path}
			if s.State == goose.StateApplied {
				m.AppliedAt = &s.AppliedAt
			}
			migrations = append(migrations, m)
		}
		return nil
	})
	return migrations, err
}

// Pending reports whether a migration is pending. It changes nothing and takes no lock, so that a process may call it
// while another one migrates.
func Pending(ctx context.Context, databaseURL string) (pending bool, err error) {
	err = withProvider(ctx, databaseURL, reads, func(p *goose.Provider, _ *sql.DB) error {
		if pending, err = p.HasPending(ctx); err != nil {
			return fmt.Errorf("checking for pending migrations: %w", err)
		}
		return nil
	})
	return pending, err //nolint:wrapcheck // withProvider and the closure wrap their errors.
}

// Fingerprint returns a hash of the migrations and procedures of this binary. The template of the test databases is
// named after it, so that a change of the schema creates a new template.
func Fingerprint() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(FS, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		migration, err := FS.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		_, _ = fmt.Fprintf(h, "%s %d\n%s", path, len(migration), migration) // Writing to a hash never fails.
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("reading the migrations: %w", err)
	}
	_, _ = h.Write([]byte(ensureEdition + ensureLayout + ensureChunks + grants))
	return hex.EncodeToString(h.Sum(nil)), nil
}

// connConfig parses the URL of the database. Its connections use no prepared statements, which PgBouncer may not
// support.
func connConfig(databaseURL string) (*pgx.ConnConfig, error) {
	text, err := config.Secret(databaseURL).Read()
	if err != nil {
		return nil, fmt.Errorf("reading the database URL: %w", err)
	}
	parsed, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("reading the database URL: %w", err)
	}
	parsed.DefaultQueryExecMode = pgx.QueryExecModeExec
	return parsed, nil
}

// Reads work through PgBouncer. Migrations need a session of their own, for the lock and for lock_timeout.
const (
	reads    = false
	migrates = true
)

// withProvider connects to the database and calls run with a goose provider, which holds a session lock while it
// migrates.
func withProvider(
	ctx context.Context, databaseURL string, migrate bool, run func(*goose.Provider, *sql.DB) error,
) error {
	config, err := connConfig(databaseURL)
	if err != nil {
		return err
	}
	if migrate {
		config.RuntimeParams["lock_timeout"] = lockTimeout
	}
	pool := stdlib.OpenDB(*config)
	defer func() { _ = pool.Close() }()
	if err := pool.PingContext(ctx); err != nil {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	if err := checkNumbering(ctx, pool); err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return fmt.Errorf("preparing the migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, pool, FS, goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("reading migrations: %w", err)
	}
	return run(provider, pool)
}

// checkNumbering returns ErrBeforeFirstRelease if the migrations of the database have the numbers of earlier builds.
// All of these created the function rate_window_hit, which no later version has.
func checkNumbering(ctx context.Context, pool *sql.DB) error {
	var old bool
	err := pool.QueryRowContext(ctx, "SELECT to_regproc('public.rate_window_hit') IS NOT NULL").Scan(&old)
	if err != nil {
		return fmt.Errorf("checking the origin of the database: %w", err)
	}
	if old {
		return ErrBeforeFirstRelease
	}
	return nil
}

// retryLocked calls run again while another session holds a lock that run needs.
func retryLocked(ctx context.Context, run func() error) error {
	deadline := time.Now().Add(lockRetryTimeout)
	return retry.Until(ctx, lockRetryInterval, func(context.Context) (done bool, err error) {
		err = run()
		var pgErr *pgconn.PgError
		locked := errors.As(err, &pgErr) && pgErr.Code == stateLockNotAvailable
		if locked && time.Now().Before(deadline) {
			return false, nil
		}
		return true, err
	})
}
