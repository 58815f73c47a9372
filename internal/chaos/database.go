package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"roomsensor/internal/chaos/trial"
	"roomsensor/internal/localdb"
)

// database is a private TimescaleDB, which is killed and started again in its place.
type database struct {
	options localdb.Options
	how     string
	info    localdb.Info
	url     atomic.Value // a string; a container has another one after each restart
}

func (d *database) address() string {
	url, _ := d.url.Load().(string) // It is set from the start.
	return url
}

func (w *world) startDatabase(ctx context.Context) error {
	o := localdb.Options{Progress: w.options.Progress}
	if w.options.Volatile {
		o.Settings = map[string]string{"fsync": "off", "full_page_writes": "off"}
	}
	server, remove, err := localdb.StartTemporary(ctx, o)
	if err != nil {
		return err
	}
	w.push(remove)
	o.DataDir, o.Progress = server.DataDir, nil
	w.database = &database{options: o, how: server.How}
	w.database.url.Store(server.URL)
	w.database.info, err = localdb.Describe(ctx, server.URL)
	return err
}

// crash is kill -9.
func (d *database) crash(ctx context.Context, alone bool) error {
	return localdb.Crash(ctx, d.options.DataDir, alone)
}

// restartDatabase brings the server up again and leads all lines to it: a container comes back on another port.
func (w *world) restartDatabase(ctx context.Context) error {
	server, err := localdb.Start(ctx, w.database.options)
	if err != nil || server.URL == w.database.address() {
		return err
	}
	u, err := url.Parse(server.URL)
	if err != nil {
		return fmt.Errorf("reading the address of the database: %w", err)
	}
	w.database.url.Store(server.URL)
	for _, s := range w.services {
		if err := s.lines[toDatabase].redirect(u.Host); err != nil {
			return err
		}
	}
	return nil
}

// backendPause is how often a backend is looked for.
const backendPause = 100 * time.Millisecond

// killBackend kills one process that serves a worker, as soon as there is one. The server then ends all the others and
// recovers by itself.
func (w *world) killBackend(ctx context.Context) error {
	for deadline := time.Now().Add(startPatience); ; {
		err := w.trial.Ask(ctx, killABackend)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if err := trial.Pause(ctx, backendPause); err != nil {
			return err
		}
	}
}

// killABackend asks the server to do it: only its own user may, and it may run in a container.
func killABackend(ctx context.Context, conn *pgx.Conn) error {
	var pid int
	err := conn.QueryRow(ctx, `
		SELECT pid FROM pg_stat_activity WHERE application_name = 'roomsensor ingest'
		ORDER BY state = 'active' DESC, state_change DESC NULLS LAST LIMIT 1`).Scan(&pid)
	if err != nil {
		return fmt.Errorf("looking for a backend: %w", err)
	}
	_, err = conn.Exec(ctx, fmt.Sprintf("COPY (SELECT) TO PROGRAM 'kill -9 %d'", pid))
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == stateProgramFailed {
		return fmt.Errorf("killing a backend: %w", err)
	}
	return nil // Its own backend ends too, so that there may be no answer.
}

// stateProgramFailed is the SQLSTATE of a program that failed.
const stateProgramFailed = "38000"
