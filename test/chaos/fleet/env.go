package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"roomsensor/internal/dev/postgres"
	"roomsensor/schema"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

// env runs everything that a trial needs.
type env struct {
	*harness.Env
	options    Options
	plan       *plan
	recorder   *recorder
	service    *harness.Service
	database   postgres.Info
	postmaster int // process id of the private server; 0 if it is not on this machine
	registered time.Duration

	credentials, apiKeys []string // by team

	nats     *proctest.NATS
	receiver *harness.Process
	workers  []*harness.Process

	mu       sync.Mutex
	serving  *apiProcess
	replaced *harness.Process // by the serving one
}

// apiProcess is a process of the API.
type apiProcess struct {
	*harness.Process
	earlier  time.Duration  // processor time of the one that it replaced
	requests sync.WaitGroup // that are sent to it
}

// newEnv builds and starts everything. The caller closes the environment, also after an error.
func newEnv(ctx context.Context, o Options) (*env, error) {
	base, err := harness.NewEnv(o.Dir, o.Progress)
	if err != nil {
		return nil, err
	}
	e := &env{Env: base, options: o, plan: newPlan(&o, time.Now()), recorder: newRecorder()}
	for _, step := range []func(context.Context) error{
		e.Build, e.startDatabase, e.register, e.verifyIDs, e.startQueue, e.startProcesses,
	} {
		if err := step(ctx); err != nil {
			return e, err
		}
	}
	return e, nil
}

// databaseSettings are those of a small dedicated server, unless the options change them. With its defaults, PostgreSQL
// would write a checkpoint every few seconds. After each one, it writes every page that changes to the write-ahead log:
// in 5 minutes, that is all of devices.
var databaseSettings = map[string]string{
	"shared_buffers": "2GB", "max_wal_size": "8GB", "max_connections": "200",
	"checkpoint_timeout": "30min", "wal_compression": "lz4",
}

func (e *env) startDatabase(ctx context.Context) error {
	settings := maps.Clone(databaseSettings)
	maps.Copy(settings, e.options.Settings)
	e.options.Settings = settings // For the report.
	server, info, err := e.StartDatabase(ctx, postgres.Options{URL: e.options.DatabaseURL, Settings: settings})
	if err != nil {
		return err
	}
	e.database = info
	if server.DataDir != "" {
		if e.postmaster, _, err = postgres.Processes(server.DataDir); err != nil {
			return err
		}
	}
	e.service = &harness.Service{Env: e.Env, DatabaseURL: func() string { return server.URL }}
	return schema.Up(ctx, server.URL, schema.Layout{})
}

func (e *env) startQueue(ctx context.Context) (err error) {
	if e.nats, e.service.JS, err = e.StartNATS(ctx); err == nil {
		e.service.QueueURL = e.nats.URL
	}
	return err
}

func (e *env) startProcesses(ctx context.Context) error {
	for i := range e.options.Workers { // They declare the stream.
		worker, err := e.start(ctx, fmt.Sprintf("worker-%d", i+1), "ingest", "--no-receiver")
		if err != nil {
			return err
		}
		e.workers = append(e.workers, worker)
	}
	var err error
	if e.receiver, err = e.start(ctx, "receiver-1", "ingest", "--no-worker"); err != nil {
		return err
	}
	api, err := e.start(ctx, "api-1", e.apiArgs()...)
	e.serving = &apiProcess{Process: api}
	return err
}

// apiArgs give an API process memory for all devices and their readings: at least its default.
func (e *env) apiArgs() []string {
	return []string{"api", fmt.Sprintf("--current-memory=%dMiB", max(64, e.options.Devices*600>>20))}
}

func (e *env) start(ctx context.Context, name string, args ...string) (*harness.Process, error) {
	p, err := e.NewProcess(name, e.Programs.Roomsensor, []string{
		"DATABASE_URL=" + e.service.DatabaseURL(), "NATS_URL=" + e.nats.URL, "LOG_LEVEL=warn",
		harness.UnlimitedBytes,
	}, args...)
	if err != nil {
		return nil, err
	}
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	e.OnClose(func(context.Context) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		if p.Ended() && p != e.replaced {
			return errors.New(name + " ended by itself")
		}
		return nil
	})
	return p, nil
}

// api returns the process of the API. It is not stopped before done is called.
func (e *env) api() (process *apiProcess, done func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.serving.requests.Add(1)
	return e.serving, e.serving.requests.Done
}

// replaceAPI replaces the API process by a new one, as a rolling deployment does: all requests go to the new one before
// the old one stops.
func (e *env) replaceAPI(ctx context.Context) error {
	s, err := e.start(ctx, "api-1-new", e.apiArgs()...)
	if err != nil {
		return err
	}
	e.mu.Lock()
	old := e.serving
	used, err := old.Usage()
	e.serving, e.replaced = &apiProcess{Process: s, earlier: used.CPU}, old.Process
	e.mu.Unlock()
	if err != nil {
		return fmt.Errorf("the old api: %w", err)
	}
	old.requests.Wait()
	if err := old.End(); err != nil {
		return fmt.Errorf("stopping the old api: %w", err)
	}
	e.Logf("replaced api 1")
	return nil
}

// serviceUsage returns what each process of roomsensor uses, by name, and what NATS does.
func (e *env) serviceUsage() (map[string]proctest.Usage, error) {
	used := map[string]proctest.Usage{}
	add := func(name string, p *proctest.Process, earlier time.Duration) error {
		u, err := p.Usage()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		u.CPU += earlier
		used[name] = u
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	errs := []error{
		add("nats", e.nats.Process, 0), add("receiver 1", e.receiver.Process, 0),
		add("api 1", e.serving.Process.Process, e.serving.earlier),
	}
	for i, s := range e.workers {
		errs = append(errs, add(fmt.Sprintf("worker %d", i+1), s.Process, 0))
	}
	return used, errors.Join(errs...)
}
