package alerts

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
	"roomsensor/test/dbtest"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
	"roomsensor/test/promtest"
)

const (
	// readyTimeout is for a process to become ready on a busy machine, stopTimeout to end after SIGTERM.
	readyTimeout = time.Minute
	stopTimeout  = 30 * time.Second
	// rolePrefix is the prefix of the database roles of the processes, and their password.
	rolePrefix = "roomsensor"
	// smallLocks is PostgreSQL's default of max_locks_per_transaction; the fault is that an operator left it.
	smallLocks = "64"
	// natsStore is less than the default of STREAM_MAX_BYTES: commands that create or change the stream need the setting.
	natsStore = "1GB"
)

// The processes under test.
const (
	apiName       = "api"
	receiverName  = "receiver"
	workerName    = "worker"
	secondName    = "second worker"
	dashboardName = "dashboard"
)

// env is what a trial runs.
type env struct {
	*harness.Env
	options   Options
	service   *harness.Service
	programs  harness.Programs
	database  postgres.Options // to start the server again
	described string           // the database as it describes itself
	server    string           // its URL as superuser
	nats      *proctest.NATS
	natsDir   string
	blind     *proctest.Proxy     // between the second worker and NATS
	processes map[string]*process // of this version, by name; it does not change once all have started
	old       *process            // of another version
	targets   []string            // ops addresses of the processes under test
	team      team
	others    []team // with two credentials each
	load      *load
	rules     string // with shorter times
	names     []string

	commands []string // that the trial ran
	logged   int      // bytes in the log of the worker before the fault

	prometheus *promtest.Prometheus
	states     watcher
}

// team is a team with its devices and keys.
type team struct {
	id          uuid.UUID
	devices     []harness.Device
	keys        []string
	credentials []string
}

// newEnv builds and starts everything. The caller closes the environment, also after an error.
func newEnv(ctx context.Context, o Options) (*env, error) {
	base, err := harness.NewEnv(o.Dir, o.Progress)
	if err != nil {
		return nil, err
	}
	e := &env{Env: base, options: o, processes: map[string]*process{}}
	for _, step := range []func(context.Context) error{
		e.readRules, e.build, e.startDatabase, e.startQueue, e.insertTeams, e.startProcesses, e.startPrometheus,
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
	e.rules, err = shortenRules(string(text))
	return err
}

// build builds the programs with the shorter intervals of this trial.
func (e *env) build(ctx context.Context) (err error) {
	e.Logf("building roomsensor and nats-server")
	e.programs, err = harness.Build(ctx, e.Dir, "-tags=alerts")
	return err
}

func (e *env) startDatabase(ctx context.Context) error {
	e.database = postgres.Options{Progress: e.options.Progress, Settings: map[string]string{
		// The trial is not about crashes of the machine.
		"fsync": "off", "full_page_writes": "off",
		"max_connections": "120", "max_locks_per_transaction": smallLocks,
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
	e.service = &harness.Service{
		Env: e.Env, Program: e.programs.Roomsensor, DatabaseURL: func() string { return e.server },
	}
	return e.service.Command(ctx, nil, e.migrateUp()...)
}

// migrateUp is the command that migrates the database, and gives the roles of the processes all their rights again.
func (e *env) migrateUp() []string {
	args := []string{"migrate", "up", "--database-roles=" + rolePrefix}
	for _, role := range []string{"api", "worker", "receiver", "dashboard"} {
		args = append(args, "--database-"+role+"-password="+rolePrefix)
	}
	return args
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
	e.natsDir = filepath.Join(e.Dir, "streams")
	if err := os.MkdirAll(e.natsDir, 0o750); err != nil {
		return fmt.Errorf("creating the directory of the streams: %w", err)
	}
	e.nats, err = proctest.StartNATS(ctx, e.programs.NATSServer, e.natsDir, log, "  max_file_store: "+natsStore)
	if err != nil {
		return err
	}
	e.OnClose(func(context.Context) error { e.nats.Kill(); return nil })
	e.service.QueueURL = e.nats.URL
	if e.blind, err = proctest.NewProxy(ctx, e.nats.URL); err != nil {
		return err
	}
	e.OnClose(func(context.Context) error { return e.blind.Close() })
	return nil
}

const (
	// mainTeam is the team that sends.
	mainTeam = "Riverside"
	// teamDevices send; their history is older than what they send.
	teamDevices = 10
	// teamKeys share the requests: a key may send 600 in ten minutes (decision 25).
	teamKeys = 64
	// otherTeams are those that fill the memory of the receiver together.
	otherTeams = 5
	// otherKeys is the number of keys of each of them. The lists of one team alone take half of a pool.
	otherKeys = 8
	// historyDays of readings make an export that lasts.
	historyDays = 20
)

func (e *env) insertTeams(ctx context.Context) error {
	return e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		list := devices("dev:830000000000001", teamDevices)
		if e.team, err = insertTeam(ctx, conn, mainTeam, list, teamKeys, 1); err != nil {
			return err
		}
		for i := range otherTeams {
			t, err := insertTeam(ctx, conn, fmt.Sprintf("Team %d", i+1), nil, otherKeys, 2)
			if err != nil {
				return err
			}
			e.others = append(e.others, t)
		}
		end := time.Now().UTC().Add(-sentAge - 24*time.Hour).Truncate(roomsensor.BucketLength)
		return insertReadings(ctx, conn, list, end.AddDate(0, 0, -historyDays), end, roomsensor.BucketLength)
	})
}

// devices returns n devices, the first with a hardware id.
func devices(first string, n int) []harness.Device {
	fleet := simulate.Fleet{Devices: n, FirstHardwareID: first}
	list := make([]harness.Device, n)
	for i := range list {
		list[i] = harness.Device{ID: uuid.New(), HardwareID: fleet.HardwareID(i), Name: fmt.Sprintf("Room %d", i+1)}
	}
	return list
}

func insertTeam(
	ctx context.Context, conn *pgx.Conn, name string, devices []harness.Device, keys, credentials int,
) (t team, err error) {
	t = team{devices: devices, credentials: make([]string, credentials)}
	if t.id, err = harness.InsertTeam(ctx, conn, name, devices); err != nil {
		return t, err
	}
	for i := range t.credentials {
		if t.credentials[i], err = harness.InsertIngestKey(ctx, conn, t.id); err != nil {
			return t, err
		}
	}
	t.keys, err = harness.InsertAPIKeys(ctx, conn, t.id, keys)
	return t, err
}

// insertReadings inserts a reading of each device per step of [from, until).
func insertReadings(
	ctx context.Context, conn *pgx.Conn, devices []harness.Device, from, until time.Time, step time.Duration,
) error {
	ids := make([]uuid.UUID, len(devices))
	for i := range devices {
		ids[i] = devices[i].ID
	}
	_, err := conn.Exec(ctx, `
		INSERT INTO readings (device_id, bucket_at, measured_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
		SELECT d, b AS bucket_at, b AS measured_at, 640, 21.4, 40.2, 380, 51.5 FROM unnest($1::uuid[]) d,
			generate_series($2::timestamptz, $3::timestamptz - interval '1 s', $4::interval) b`, ids, from, until, step)
	if err != nil {
		return fmt.Errorf("inserting readings: %w", err)
	}
	return nil
}

// process is a process of roomsensor under test. It keeps its addresses when it is started again.
type process struct {
	*proctest.Process
	name         string
	address, ops string
	command      proctest.Command
	settings     []string // that a fault or its repair changes
}

func (p *process) url() string { return "http://" + p.address }

// start starts the process and waits until it is ready.
func (p *process) start(ctx context.Context) error {
	if err := p.launch(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := p.AwaitReady(ctx, p.ops); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// launch starts the process.
func (p *process) launch() (err error) {
	command := p.command
	command.Env = slices.Concat(command.Env, p.settings)
	p.Process, err = proctest.Start(command)
	return err
}

// stop ends the process. It does nothing if the process was not started, or ended by itself.
func (p *process) stop() error {
	if p.Process == nil || p.Ended() {
		return nil
	}
	_, err := p.Stop(stopTimeout)
	return err
}

func (p *process) restart(ctx context.Context) error { return errors.Join(p.stop(), p.start(ctx)) }

// setting returns the value of a setting of the processes under test.
func (p *process) setting(name string) (value string) {
	for _, s := range slices.Concat(settings, p.settings) {
		if v, ok := strings.CutPrefix(s, name+"="); ok {
			value = v
		}
	}
	return value
}

// settings are those of the processes under test: small limits, so that a fault reaches them within seconds.
var settings = []string{
	"STREAM_MAX_BYTES=32MiB", "UPLOAD_MEMORY=64MiB", "REJECTS_MAX_BYTES=8MiB", "PARK_AFTER=6",
	"MAINTAIN_WINDOW=00:00-23:59",
}

func (e *env) startProcesses(ctx context.Context) error {
	for _, p := range []struct{ name, role, queue, command, without string }{
		// The worker declares the stream for the others.
		{workerName, "worker", e.nats.URL, "ingest", "--no-receiver"},
		{secondName, "worker", e.blind.URL, "ingest", "--no-receiver"},
		{receiverName, "receiver", e.nats.URL, "ingest", "--no-worker"},
		{apiName, "api", e.nats.URL, "api", ""},
		{dashboardName, "dashboard", e.nats.URL, "dashboard", ""},
	} {
		args := []string{p.command}
		if p.without != "" {
			args = append(args, p.without)
		}
		started, err := e.newProcess(p.name, p.role, p.queue, args)
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

func (e *env) newProcess(name, role, queue string, args []string) (*process, error) {
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
	u, err := url.Parse(e.server)
	if err != nil {
		return nil, fmt.Errorf("reading the URL of the database: %w", err)
	}
	u.User = url.UserPassword(rolePrefix+"_"+role, rolePrefix)
	variables := append([]string{
		"DATABASE_URL=" + u.String(), "NATS_URL=" + queue,
		"API_ADDR=" + p.address, "INGEST_ADDR=" + p.address, "DASHBOARD_ADDR=" + p.address, "OPS_ADDR=" + p.ops,
	}, settings...)
	p.command = proctest.Command{Path: e.programs.Roomsensor, Args: args, Env: variables, Log: log}
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
	for _, p := range e.processes {
		e.targets = append(e.targets, p.ops)
	}
	e.prometheus, err = promtest.Start(ctx, promtest.Options{
		Binary: binary, Config: string(config), Rules: e.rules, Dir: e.Dir, Targets: e.targets, Log: log,
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
