package alerts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/simulate"
	"roomsensor/schema"
	"roomsensor/test/dbtest"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
	"roomsensor/test/promtest"
)

const (
	// readyTimeout is for a process to become ready on a busy machine, stopTimeout to end after SIGTERM.
	readyTimeout = time.Minute
	stopTimeout  = 30 * time.Second
)

// The processes under test.
const (
	apiName       = "api"
	receiverName  = "receiver"
	dashboardName = "dashboard"
)

// env is what a trial runs.
type env struct {
	*harness.Env
	options    Options
	programs   harness.Programs
	database   postgres.Options // to start the server again
	described  string           // the database as it describes itself
	server     string           // its URL
	nats       *proctest.NATS
	processes  map[string]*process // by name; it does not change once all have started
	devices    []harness.Device
	keys       []string
	credential string
	load       *load
	rules      string // with shorter times
	names      []string

	prometheus *promtest.Prometheus
	states     watcher
}

// newEnv builds and starts everything. The caller closes the environment, also after an error.
func newEnv(ctx context.Context, o Options) (*env, error) {
	base, err := harness.NewEnv(o.Dir, o.Progress)
	if err != nil {
		return nil, err
	}
	e := &env{Env: base, options: o, processes: map[string]*process{}}
	for _, step := range []func(context.Context) error{
		e.readRules, e.build, e.startDatabase, e.startQueue, e.insertTeam, e.startProcesses, e.startPrometheus,
	} {
		if err := step(ctx); err != nil {
			return e, err
		}
	}
	return e, nil
}

func (e *env) readRules(context.Context) error {
	text, err := os.ReadFile(filepath.Join(e.options.Root, "deploy/prometheus/rules.yml"))
	if err != nil {
		return fmt.Errorf("reading the rules: %w", err)
	}
	e.names = alertNames(string(text))
	e.rules = shortenRules(string(text))
	return nil
}

func (e *env) build(ctx context.Context) (err error) {
	e.Logf("building roomsensor and nats-server")
	e.programs, err = harness.Build(ctx, e.Dir)
	return err
}

func (e *env) startDatabase(ctx context.Context) error {
	e.database = postgres.Options{Progress: e.options.Progress, Settings: map[string]string{
		// The trial is not about crashes of the machine.
		"fsync": "off", "full_page_writes": "off",
	}}
	server, remove, err := dbtest.StartTemporary(ctx, e.database)
	if err != nil {
		return err
	}
	e.OnClose(func(context.Context) error { return remove() })
	e.database.DataDir, e.server = server.DataDir, server.URL
	info, err := postgres.Describe(ctx, server.URL)
	if err != nil {
		return err
	}
	e.described = info.String()
	return schema.Up(ctx, server.URL, schema.Layout{})
}

// restartDatabase starts the server again, with its data and the present settings.
func (e *env) restartDatabase(ctx context.Context) error {
	server, err := postgres.Start(ctx, e.database)
	if err != nil {
		return err
	}
	if server.URL != e.server {
		return errors.New("the database has another address than before")
	}
	return nil
}

func (e *env) startQueue(ctx context.Context) error {
	log, err := e.LogFile("nats")
	if err != nil {
		return err
	}
	streams := filepath.Join(e.Dir, "streams")
	if err := os.MkdirAll(streams, 0o750); err != nil {
		return fmt.Errorf("creating the directory of the streams: %w", err)
	}
	if e.nats, err = proctest.StartNATS(ctx, e.programs.NATSServer, streams, log); err != nil {
		return err
	}
	e.OnClose(func(context.Context) error { e.nats.Kill(); return nil })
	return nil
}

const (
	// teamDevices is the number of devices that send.
	teamDevices = 10
	// teamKeys share the requests: a key may send 600 in ten minutes (decision 25).
	teamKeys = 64
)

func (e *env) insertTeam(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, e.server)
	if err != nil {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	fleet := simulate.Fleet{Devices: teamDevices, FirstHardwareID: "dev:830000000000001"}
	for i := range teamDevices {
		e.devices = append(e.devices, harness.Device{
			ID: uuid.New(), HardwareID: fleet.HardwareID(i), Name: fmt.Sprintf("Room %d", i+1),
		})
	}
	team, err := harness.InsertTeam(ctx, conn, "Riverside", e.devices)
	if err != nil {
		return err
	}
	if e.credential, err = harness.InsertIngestKey(ctx, conn, team); err != nil {
		return err
	}
	e.keys, err = harness.InsertAPIKeys(ctx, conn, team, teamKeys)
	return err
}

// process is a process of roomsensor under test. It keeps its addresses when it is started again.
type process struct {
	*proctest.Process
	name         string
	address, ops string
	command      proctest.Command
}

func (p *process) url() string { return "http://" + p.address }

// start starts the process and waits until it is ready.
func (p *process) start(ctx context.Context) (err error) {
	if p.Process, err = proctest.Start(p.command); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := p.AwaitReady(ctx, p.ops); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// stop ends the process. It does nothing if the process was not started, or ended by itself.
func (p *process) stop() error {
	if p.Process == nil || p.Ended() {
		return nil
	}
	_, err := p.Stop(stopTimeout)
	return err
}

func (e *env) startProcesses(ctx context.Context) error {
	for _, p := range []struct {
		name string
		args []string
	}{
		{"worker", []string{"ingest", "--no-receiver"}}, // It declares the stream for the others.
		{receiverName, []string{"ingest", "--no-worker"}},
		{apiName, []string{"api"}},
		{dashboardName, []string{"dashboard"}},
	} {
		started, err := e.newProcess(p.name, p.args)
		if err != nil {
			return err
		}
		e.processes[p.name] = started
		e.OnClose(func(context.Context) error { return started.stop() })
		if err := started.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) newProcess(name string, args []string) (*process, error) {
	p := &process{name: name}
	var err error
	for _, address := range []*string{&p.address, &p.ops} {
		if *address, err = proctest.FreeAddress(); err != nil {
			return nil, err
		}
	}
	log, err := e.LogFile(name)
	if err != nil {
		return nil, err
	}
	p.command = proctest.Command{Path: e.programs.Roomsensor, Args: args, Log: log, Env: []string{
		"DATABASE_URL=" + e.server, "NATS_URL=" + e.nats.URL,
		"API_ADDR=" + p.address, "INGEST_ADDR=" + p.address, "DASHBOARD_ADDR=" + p.address, "OPS_ADDR=" + p.ops,
	}}
	return p, nil
}

// startPrometheus starts Prometheus and the usual load.
func (e *env) startPrometheus(ctx context.Context) error {
	binary, err := promtest.Find(e.options.Root, "prometheus")
	if err != nil {
		return err
	}
	config, err := os.ReadFile(filepath.Join(e.options.Root, "deploy/prometheus/prometheus.yml"))
	if err != nil {
		return fmt.Errorf("reading the configuration of Prometheus: %w", err)
	}
	log, err := e.LogFile("prometheus")
	if err != nil {
		return err
	}
	var targets []string
	for _, p := range e.processes {
		targets = append(targets, p.ops)
	}
	e.prometheus, err = promtest.Start(ctx, promtest.Options{
		Binary: binary, Config: string(config), Rules: e.rules, Dir: e.Dir, Targets: targets, Log: log,
	})
	if err != nil {
		return err
	}
	e.OnClose(func(context.Context) error { e.prometheus.Kill(); return nil })
	e.states.prometheus = e.prometheus
	e.states.reset()
	e.load = newLoad(e)
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	group.Go(func() { e.load.run(running) })
	group.Go(func() { e.states.run(running) })
	e.OnClose(func(context.Context) error { stop(); group.Wait(); return nil })
	return nil
}
