package localdb

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
)

const (
	// superuser is the role of every server that this package starts.
	superuser = "postgres"
	// database is the database that URL names; it is made empty.
	database = "roomsensor"
	// connectTimeout is for one attempt on a server of this machine.
	connectTimeout = 15 * time.Second
	// startTimeout is for a server that was told to start; after a crash it replays its log first.
	startTimeout = 2 * time.Minute
	// givenTimeout is for a server that somebody else runs.
	givenTimeout = 15 * time.Second
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

// ping tells whether the server behind the URL lets us in. The password is random: one that does is ours.
func ping(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err //nolint:wrapcheck // Its callers say what they were doing.
	}
	return conn.Close(ctx) //nolint:wrapcheck // As above.
}

// await waits until the server behind the URL answers, and gives up at once where waiting cannot help.
func await(ctx context.Context, url string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := ping(ctx, url)
		if err == nil {
			return nil
		}
		if refused(err) || pause(ctx, pollInterval) != nil {
			return fmt.Errorf("waiting for the server to answer: %w", err)
		}
	}
}

// refused tells whether a server answered for good: with a wrong password, role or database.
func refused(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code[:2] == "28" || pgErr.Code[:2] == "3D" || pgErr.Code[:2] == "42")
}

// given checks that the server of a URL from outside answers and has the extension.
func given(ctx context.Context, o Options) (*Server, error) {
	if err := await(ctx, o.URL, givenTimeout); err != nil {
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

// createDatabase makes the database of a URL where it is missing, empty and without what an image may have put into its
// default template.
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
	var there bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there)
	if err == nil && !there {
		_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" TEMPLATE template0 ENCODING 'UTF8'")
	}
	if err != nil {
		return fmt.Errorf("creating the database: %w", err)
	}
	return nil
}
