package alerts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/simulate"
	"roomsensor/schema"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
	"roomsensor/test/promtest"
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
	processes  map[string]*harness.Process // by name; it does not change once all have started
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
	e := &env{Env: base, options: o, processes: map[string]*harness.Process{}}
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
	e.database = postgres.Options{Settings: map[string]string{
		// The trial is not about crashes of the machine.
		"fsync": "off", "full_page_writes": "off",
	}}
	server, info, err := e.StartDatabase(ctx, e.database)
	if err != nil {
		return err
	}
	e.database.DataDir, e.server, e.described = server.DataDir, server.URL, info.String()
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

func (e *env) startQueue(ctx context.Context) (err error) {
	e.nats, _, err = e.StartNATS(ctx, e.programs.NATSServer)
	return err
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
		started, err := e.NewProcess(p.name, e.programs.Roomsensor,
			[]string{"DATABASE_URL=" + e.server, "NATS_URL=" + e.nats.URL}, p.args...)
		if err != nil {
			return err
		}
		e.processes[p.name] = started
		if err := started.Start(ctx); err != nil {
			return err
		}
	}
	return nil
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
		targets = append(targets, p.Ops)
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
