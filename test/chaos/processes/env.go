package processes

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"roomsensor/internal/dev/postgres"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

// startTimeout is for a process to become ready on a busy machine.
const startTimeout = time.Minute

// env runs everything that a trial needs.
type env struct {
	*harness.Env
	options   Options
	database  *database
	queue     *program
	queueURL  string
	service   *harness.Service
	fleet     *harness.Fleet
	processes map[string]*process // of roomsensor, by name
}

// newEnv builds and starts everything. The caller closes the environment, also after an error.
func newEnv(ctx context.Context, o Options) (*env, error) {
	base, err := harness.NewEnv(o.Dir, o.Progress)
	if err != nil {
		return nil, err
	}
	e := &env{Env: base, options: o, processes: map[string]*process{}}
	for _, step := range []func(context.Context) error{
		e.Build, e.startDatabase, e.startQueue, e.createFleet, e.startProcesses,
	} {
		if err := step(ctx); err != nil {
			return e, err
		}
	}
	return e, nil
}

func (e *env) createFleet(ctx context.Context) (err error) {
	e.fleet, err = e.service.CreateFleet(ctx, &e.options.Options)
	return err
}

// database is a private TimescaleDB, which is killed and restarted with its data.
type database struct {
	options postgres.Options
	info    postgres.Info
	url     atomic.Value // string; a container gets a new port with each restart
}

func (d *database) address() string {
	url, _ := d.url.Load().(string) // Set by startDatabase.
	return url
}

func (e *env) startDatabase(ctx context.Context) error {
	o := postgres.Options{}
	if e.options.Volatile {
		o.Settings = map[string]string{"fsync": "off", "full_page_writes": "off"}
	}
	server, info, err := e.StartDatabase(ctx, o)
	if err != nil {
		return err
	}
	o.DataDir = server.DataDir
	e.database = &database{options: o, info: info}
	e.database.url.Store(server.URL)
	return nil
}

// restartDatabase starts the server again and redirects all proxies to it.
func (e *env) restartDatabase(ctx context.Context) error {
	server, err := postgres.Start(ctx, e.database.options)
	if err != nil || server.URL == e.database.address() {
		return err
	}
	u, err := url.Parse(server.URL)
	if err != nil {
		return fmt.Errorf("reading the URL of the database: %w", err)
	}
	e.database.url.Store(server.URL)
	for _, p := range e.processes {
		if err := p.proxies[toDatabase].redirect(u.Host); err != nil {
			return err
		}
	}
	return nil
}

// killBackend kills a process of PostgreSQL that serves a worker, as soon as there is one. PostgreSQL then ends its
// other backends and recovers by itself.
func (e *env) killBackend(ctx context.Context) error {
	return harness.Await(ctx, startTimeout, 100*time.Millisecond, func(ctx context.Context) error {
		return e.service.Query(ctx, killABackend)
	})
}

// programFailed is the SQLSTATE of a failed COPY TO PROGRAM.
const programFailed = "38000"

// killABackend has the server kill its own process: only its user may do that, and it may run in a container.
func killABackend(ctx context.Context, conn *pgx.Conn) error {
	var pid int
	err := conn.QueryRow(ctx, `
		SELECT pid FROM pg_stat_activity WHERE application_name = 'roomsensor ingest'
		ORDER BY state = 'active' DESC, state_change DESC NULLS LAST LIMIT 1`).Scan(&pid)
	if err != nil {
		return fmt.Errorf("finding a backend: %w", err)
	}
	_, err = conn.Exec(ctx, fmt.Sprintf("COPY (SELECT) TO PROGRAM 'kill -9 %d'", pid))
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == programFailed {
		return fmt.Errorf("killing a backend: %w", err)
	}
	return nil // The backend of this connection ends too, so that an answer may be missing.
}

func (e *env) startQueue(ctx context.Context) error {
	server, js, err := e.StartNATS(ctx)
	if err != nil {
		return err
	}
	e.queueURL = server.URL
	e.service = &harness.Service{
		Env: e.Env, Program: e.Programs.Roomsensor, DatabaseURL: e.database.address, QueueURL: server.URL, JS: js,
		AckWait: e.options.AckWait,
	}
	e.queue = &program{
		name: natsServer, process: server.Process,
		launch: func(ctx context.Context) (*proctest.Process, error) {
			err := server.Restart(ctx)
			return server.Process, err
		},
	}
	e.OnClose(func(context.Context) error { return e.queue.stop() })
	return nil
}

// process is a process of roomsensor with its own proxies to the database and NATS.
type process struct {
	*program
	*harness.Process

	proxies map[string]*proxy // by toDatabase and toQueue
}

func (e *env) startProcesses(ctx context.Context) error {
	commands := map[string][]string{receiver: {"ingest", "--no-worker"}, api: {"api"}}
	for i := range e.options.Workers {
		commands[workerName(i)] = []string{"ingest", "--no-receiver"}
	}
	for name, args := range commands {
		if err := e.startProcess(ctx, name, args); err != nil {
			return err
		}
	}
	e.service.Receiver, e.service.API = e.processes[receiver].Address, e.processes[api].Address
	for _, p := range e.processes {
		if err := p.WhenReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) startProcess(ctx context.Context, name string, args []string) (err error) {
	p := &process{}
	if p.proxies, err = e.openProxies(name); err != nil {
		return err
	}
	settings := []string{
		"STREAM_MAX_BYTES=2GiB", harness.UnlimitedRequests, harness.UnlimitedBytes,
		"DATABASE_URL=" + p.proxies[toDatabase].url, "NATS_URL=" + p.proxies[toQueue].url,
	}
	if p.Process, err = e.NewProcess(name, e.Programs.Roomsensor, settings, args...); err != nil {
		return err
	}
	p.program = &program{name: name, launch: func(context.Context) (*proctest.Process, error) {
		err := p.Launch()
		return p.Process.Process, err
	}}
	e.OnClose(func(context.Context) error { return p.stop() })
	e.processes[name] = p
	return p.start(ctx)
}

func (e *env) openProxies(name string) (map[string]*proxy, error) {
	open := map[string]*proxy{}
	for server, url := range map[string]string{toDatabase: e.database.address(), toQueue: e.queueURL} {
		p, err := newProxy(name+" to "+server, url)
		if err != nil {
			return nil, err
		}
		e.OnClose(func(context.Context) error { p.close(); return nil })
		open[server] = p
	}
	return open, nil
}
