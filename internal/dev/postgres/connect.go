package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"roomsensor/internal/retry"
)

const (
	// superuser is the role of every server that this package starts.
	superuser = "postgres"
	// database is the database of Server.URL. It is created empty.
	database = "roomsensor"
	// connectTimeout is the limit for one attempt to connect to a server of this machine.
	connectTimeout = 15 * time.Second
	// startTimeout is the limit for a server to start; after a crash it replays its log first.
	startTimeout = 2 * time.Minute
	// urlTimeout is the limit for a server that this package did not start.
	urlTimeout = 15 * time.Second
	// pollInterval is the time between two attempts.
	pollInterval = 100 * time.Millisecond
)

// url returns the URL of the server's database.
func (s *state) url() string { return s.urlOf(database) }

func (s *state) urlOf(name string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.Password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)),
		Path:     "/" + name,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// ping connects to the server of a URL. The password is random, so a server that accepts it is the right one.
func ping(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err //nolint:wrapcheck // Its callers say what they were doing.
	}
	return conn.Close(ctx) //nolint:wrapcheck // As above.
}

// await waits until the server of a URL accepts a connection. It gives up at once if waiting cannot help.
func await(ctx context.Context, url string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return retry.Until(ctx, pollInterval, func(ctx context.Context) (bool, error) {
		err := ping(ctx, url)
		if err != nil && (refused(err) || ctx.Err() != nil) {
			return false, fmt.Errorf("waiting for the server to answer: %w", err)
		}
		return err == nil, nil
	})
}

// refused reports whether the server rejects the connection permanently: wrong password, role or database.
func refused(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code[:2] == "28" || pgErr.Code[:2] == "3D" || pgErr.Code[:2] == "42")
}

// checkURL checks that the server of Options.URL answers and has the extension.
func checkURL(ctx context.Context, o Options) (*Server, error) {
	if err := await(ctx, o.URL, urlTimeout); err != nil {
		return nil, fmt.Errorf("%s is set, but its server cannot be used: %w", o.URLVariable, err)
	}
	version, err := available(ctx, o.URL)
	if err != nil {
		return nil, fmt.Errorf("%s is set, but its server cannot be used: %w", o.URLVariable, err)
	}
	if err := sufficient(version); err != nil {
		return nil, fmt.Errorf("the server of %s cannot be used: %w", o.URLVariable, err)
	}
	return &Server{URL: o.URL, How: "the server of " + o.URLVariable}, nil
}

// createDatabase creates the database of a URL if it is missing. It uses template0, because an image may have added to
// the default template.
func createDatabase(ctx context.Context, url string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("creating the database: %w", err)
	}
	name := config.Database
	config.Database = "postgres"
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("creating the database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var exists bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists)
	if err == nil && !exists {
		_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" TEMPLATE template0 ENCODING 'UTF8'")
	}
	if err != nil {
		return fmt.Errorf("creating the database: %w", err)
	}
	return nil
}

// The editions of TimescaleDB.
const (
	Apache    = "apache"
	Community = "community"
)

// Info describes a server.
type Info struct {
	// Edition is Apache or Community.
	Edition string
	// TimescaleDB and PostgreSQL are versions such as 2.29.0 and 17.6.
	TimescaleDB, PostgreSQL string
}

func (i Info) String() string {
	return fmt.Sprintf("TimescaleDB %s, %s edition, on PostgreSQL %s", i.TimescaleDB, i.Edition, i.PostgreSQL)
}

// Describe reads the edition and the versions of the server of a URL. If the database does not have the extension yet,
// it creates it and rolls that back, which the role must be allowed to do.
func Describe(ctx context.Context, url string) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var i Info
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return Info{}, fmt.Errorf("reading the edition of TimescaleDB: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // It rolls back.
	if _, err = conn.Exec(ctx, "BEGIN; CREATE EXTENSION IF NOT EXISTS timescaledb"); err == nil {
		err = conn.QueryRow(ctx, `
			SELECT extversion, split_part(current_setting('server_version'), ' ', 1),
			       CASE current_setting('timescaledb.license') WHEN 'apache' THEN 'apache' ELSE 'community' END
			FROM pg_extension WHERE extname = 'timescaledb'`).Scan(&i.TimescaleDB, &i.PostgreSQL, &i.Edition)
	}
	if err != nil {
		return Info{}, fmt.Errorf("reading the edition of TimescaleDB: %w", err)
	}
	return i, nil
}

// available returns the version of the extension that the server can create, or an empty string.
func available(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, urlTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", fmt.Errorf("connecting: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var version string
	err = conn.QueryRow(ctx,
		"SELECT default_version FROM pg_available_extensions WHERE name = 'timescaledb'").Scan(&version)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("reading the available extensions: %w", err)
	}
	return version, nil
}

// The oldest TimescaleDB that the service runs on.
const minMajor, minMinor = 2, 19

// sufficient returns an error that says what is wrong with a version of TimescaleDB.
func sufficient(version string) error {
	if version == "" {
		return errors.New("it does not have the extension timescaledb")
	}
	var major, minor int
	_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor) // Anything else than a number counts as too old.
	if major < minMajor || major == minMajor && minor < minMinor {
		return fmt.Errorf("its TimescaleDB is %s and %d.%d is the oldest that works", version, minMajor, minMinor)
	}
	return nil
}
