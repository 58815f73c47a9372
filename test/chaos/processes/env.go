package processes

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"roomsensor/internal/dev/postgres"
	"roomsensor/test/dbtest"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

const (
	// startTimeout is for a process to become ready on a busy machine.
	startTimeout = time.Minute
	// stopTimeout is for a process to end after SIGTERM.
	stopTimeout = 30 * time.Second
)

// env runs everything that a trial needs.
type env struct {
	*harness.Env
	options   Options
	programs  harness.Programs
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
		e.build, e.startDatabase, e.startQueue, e.connect, e.createFleet, e.startProcesses,
	} {
		if err := step(ctx); err != nil {
			return e, err
		}
	}
	return e, nil
}

// buildPrograms compiles the programs, roomsensor with the build tag of the negative control.
func buildPrograms(ctx context.Context, dir string) (harness.Programs, error) {
	return harness.Build(ctx, dir, "-tags=chaos")
}

func (e *env) build(ctx context.Context) (err error) {
	if e.programs = e.options.Programs; e.programs.Roomsensor != "" {
		return nil
	}
	e.Logf("building roomsensor and nats-server")
	e.programs, err = buildPrograms(ctx, e.Dir)
	return err
}

// connect connects to NATS without a proxy.
func (e *env) connect(context.Context) error {
	conn, js, err := harness.Connect(e.queueURL)
	if err != nil {
		return err
	}
	e.OnClose(func(context.Context) error { conn.Close(); return nil })
	e.service = &harness.Service{
		Env: e.Env, Program: e.programs.Roomsensor, DatabaseURL: e.database.address, QueueURL: e.queueURL, JS: js,
		AckWait: e.options.AckWait,
	}
	return nil
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
	o := postgres.Options{Progress: e.options.Progress}
	if e.options.Volatile {
		o.Settings = map[string]string{"fsync": "off", "full_page_writes": "off"}
	}
	server, remove, err := dbtest.StartTemporary(ctx, o)
	if err != nil {
		return err
	}
	e.OnClose(func(context.Context) error { return remove() })
	o.DataDir, o.Progress = server.DataDir, nil
	e.database = &database{options: o}
	e.database.url.Store(server.URL)
	e.database.info, err = postgres.Describe(ctx, server.URL)
	return err
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
	log, err := e.LogFile(natsServer)
	if err != nil {
		return err
	}
	streams := filepath.Join(e.Dir, "streams")
	if err := os.MkdirAll(streams, 0o750); err != nil {
		return fmt.Errorf("creating the directory of the streams: %w", err)
	}
	server, err := proctest.StartNATS(ctx, e.programs.NATSServer, streams, log)
	if err != nil {
		return err
	}
	e.queueURL = server.URL
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
	proxies map[string]*proxy // by toDatabase and toQueue
	address string            // of its API or receiver
	ops     string
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
	e.service.Receiver, e.service.API = e.processes[receiver].address, e.processes[api].address
	for _, p := range e.processes {
		if err := p.awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) startProcess(ctx context.Context, name string, args []string) (err error) {
	p := &process{}
	if p.address, err = proctest.FreeAddress(); err != nil {
		return err
	}
	if p.ops, err = proctest.FreeAddress(); err != nil {
		return err
	}
	if p.proxies, err = e.openProxies(name); err != nil {
		return err
	}
	log, err := e.LogFile(name)
	if err != nil {
		return err
	}
	p.program = &program{name: name, launch: func(context.Context) (*proctest.Process, error) {
		return proctest.Start(proctest.Command{Path: e.programs.Roomsensor, Args: args, Env: e.variables(p), Log: log})
	}}
	e.OnClose(func(context.Context) error { return p.stop() })
	e.processes[name] = p
	return p.start(ctx)
}

// variables returns the environment variables of a process.
func (e *env) variables(p *process) []string {
	list := []string{
		"OPS_ADDR=" + p.ops, "API_ADDR=" + p.address, "INGEST_ADDR=" + p.address, "STREAM_MAX_BYTES=2GiB",
		harness.UnlimitedRequests,
		"DATABASE_URL=" + p.proxies[toDatabase].url, "NATS_URL=" + p.proxies[toQueue].url,
	}
	if e.options.AckEarly {
		list = append(list, "ROOMSENSOR_CHAOS_ACK_EARLY=true")
	}
	return list
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

func (p *process) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := p.process.AwaitReady(ctx, p.ops); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}
