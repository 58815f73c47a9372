package localdb

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// The editions of TimescaleDB, by the words that the program uses for them.
const (
	Apache    = "apache"
	Community = "community"
)

// Info says what a server is.
type Info struct {
	// Edition is Apache or Community.
	Edition string
	// TimescaleDB and PostgreSQL are versions like 2.29.0 and 17.6.
	TimescaleDB, PostgreSQL string
}

func (i Info) String() string {
	return fmt.Sprintf("TimescaleDB %s, %s edition, on PostgreSQL %s", i.TimescaleDB, i.Edition, i.PostgreSQL)
}

// Describe asks the server behind url for its edition and versions. Where the database has no extension yet it looks
// in a database of its own, for which the role must be allowed to create databases.
func Describe(ctx context.Context, url string) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return Info{}, fmt.Errorf("asking for the edition of TimescaleDB: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	info, err := describe(ctx, conn)
	if errors.Is(err, pgx.ErrNoRows) {
		info, err = describeAside(ctx, conn)
	}
	if err != nil {
		return Info{}, fmt.Errorf("asking for the edition of TimescaleDB: %w", err)
	}
	return info, nil
}

func describe(ctx context.Context, conn *pgx.Conn) (Info, error) {
	var i Info
	err := conn.QueryRow(ctx, `
		SELECT extversion, split_part(current_setting('server_version'), ' ', 1),
		       CASE current_setting('timescaledb.license') WHEN 'apache' THEN 'apache' ELSE 'community' END
		FROM pg_extension WHERE extname = 'timescaledb'`).Scan(&i.TimescaleDB, &i.PostgreSQL, &i.Edition)
	return i, err //nolint:wrapcheck // Describe wraps it.
}

// describeAside looks in a database that exists only for this.
func describeAside(ctx context.Context, conn *pgx.Conn) (info Info, err error) {
	name := "roomsensor_probe_" + strings.ToLower(newPassword()[:8])
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return Info{}, err //nolint:wrapcheck // Describe wraps it.
	}
	defer func() {
		_, dropErr := conn.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
		err = errors.Join(err, dropErr)
	}()
	config := conn.Config().Copy()
	config.Database = name
	probe, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return Info{}, err //nolint:wrapcheck // Describe wraps it.
	}
	defer func() { _ = probe.Close(ctx) }()
	if _, err := probe.Exec(ctx, "CREATE EXTENSION timescaledb"); err != nil {
		return Info{}, err //nolint:wrapcheck // Describe wraps it.
	}
	return describe(ctx, probe)
}

// available returns the version of the extension that the server could create, empty for none.
func available(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, givenTimeout)
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
		return "", fmt.Errorf("looking for the extension: %w", err)
	}
	return version, nil
}

// The oldest TimescaleDB that the service runs on.
const minMajor, minMinor = 2, 19

// sufficient says what is wrong with a version of TimescaleDB.
func sufficient(version string) error {
	if version == "" {
		return errors.New("it does not have the extension timescaledb")
	}
	var parts [2]int
	for i, text := range strings.SplitN(version, ".", 3)[:min(2, strings.Count(version, ".")+1)] {
		parts[i], _ = strconv.Atoi(text) // What is no number counts as too old.
	}
	if parts[0] < minMajor || parts[0] == minMajor && parts[1] < minMinor {
		return fmt.Errorf("its TimescaleDB is %s and %d.%d is the oldest that works", version, minMajor, minMinor)
	}
	return nil
}
