package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"

	"github.com/jackc/pgx/v5"

	"roomsensor/internal/procs"
)

// ground is what every part of the trial stands on.
type ground struct {
	dir        string // for what processes keep
	roomsensor string // the program
	nats       string // the server
	log        io.Writer
	// database makes an empty database, and tells how to drop it.
	database func(context.Context) (url string, drop func() error, err error)
}

// build compiles what is run.
func build(ctx context.Context, dir string, log io.Writer) (*ground, error) {
	g := &ground{dir: dir, log: log}
	g.say("building the program and nats-server")
	var err, failed error
	g.roomsensor, err = procs.Build(ctx, dir, procs.Roomsensor)
	g.nats, failed = procs.Build(ctx, dir, procs.NATSServer)
	return g, errors.Join(err, failed)
}

func (g *ground) say(format string, args ...any) {
	_, _ = fmt.Fprintf(g.log, "burst: "+format+"\n", args...) // Progress that cannot be shown stops nothing.
}

// createDatabase makes an empty database on a server.
func createDatabase(ctx context.Context, server string) (address string, drop func() error, err error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", nil, fmt.Errorf("reading the server's URL: %w", err)
	}
	name := fmt.Sprintf("burst_%08x", rand.Uint32()) //nolint:gosec // It only has to be another one each time.
	if err := execute(ctx, server, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	u.Path = "/" + name
	return u.String(), func() error {
		return execute(context.WithoutCancel(ctx), server, "DROP DATABASE "+name+" WITH (FORCE)")
	}, nil
}

func execute(ctx context.Context, database, sql string) error {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return fmt.Errorf("connecting to the server: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("executing %s: %w", sql, err)
	}
	return nil
}
