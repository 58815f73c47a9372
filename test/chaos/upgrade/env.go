package upgrade

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/retry"
	"roomsensor/schema"
	"roomsensor/test/dbtest"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

const (
	// stopTimeout is for a process to end after SIGTERM and its drain delay.
	stopTimeout = 30 * time.Second
	// replicas is the number of processes of each kind.
	replicas = 2
)

// The versions.
const (
	oldVersion = "old"
	newVersion = "new"
)

// env runs everything that a trial needs.
type env struct {
	*harness.Env
	options     Options
	base        base
	programs    map[string]string // roomsensor by version
	natsServer  string
	database    string // URL of the owner of the tables
	description string // of the database
	roles       schema.Roles
	service     *harness.Service
	fleet       *harness.Fleet
	readKeys    []string // of the first team
	kinds       []*kind
	stages      *stages
}

// kind is a kind of process, with its running replicas.
type kind struct {
	name     string
	args     []string
	role     schema.Role
	balancer *balancer // nil for workers
	running  []*replica
	started  int
}

type replica struct {
	*proctest.Service
	version string
	backend *backend
}

// newEnv builds and starts everything with the old version. The caller closes it, also after an error.
func newEnv(ctx context.Context, o Options) (*env, error) {
	directory, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the clone: %w", err)
	}
	found, err := findBase(ctx, directory, o.Base)
	if err != nil {
		return nil, err
	}
	shared, err := harness.NewEnv(o.Dir, o.Progress)
	if err != nil {
		return nil, err
	}
	e := &env{Env: shared, options: o, base: found, programs: map[string]string{}, stages: &stages{}}
	for _, step := range []func(context.Context) error{
		e.build, e.startDatabase, e.startQueue, e.createFleet, e.startProcesses,
	} {
		if err := step(ctx); err != nil {
			return e, err
		}
	}
	return e, nil
}

func (e *env) build(ctx context.Context) error {
	e.Logf("building %s, this version and nats-server", e.base.name)
	programs, err := harness.Build(ctx, e.Dir)
	if err != nil {
		return err
	}
	e.programs[newVersion], e.natsServer = programs.Roomsensor, programs.NATSServer
	e.programs[oldVersion], err = e.base.build(ctx, ".", filepath.Join(e.Dir, oldVersion))
	return err
}

// startDatabase starts a database with a role per kind of process, as in production: a migration that takes a right
// from the old version must fail the trial.
func (e *env) startDatabase(ctx context.Context) error {
	server, remove, err := dbtest.StartTemporary(ctx, postgres.Options{Progress: e.options.Progress})
	if err != nil {
		return err
	}
	e.OnClose(func(context.Context) error { return remove() })
	e.database = server.URL
	e.roles = schema.Roles{Prefix: "trial", Passwords: map[schema.Role]string{}}
	for _, role := range schema.AllRoles {
		e.roles.Passwords[role] = rand.Text()
	}
	info, err := postgres.Describe(ctx, server.URL)
	e.description = info.String()
	return err
}

func (e *env) startQueue(ctx context.Context) error {
	log, err := e.LogFile("nats-server")
	if err != nil {
		return err
	}
	dir := filepath.Join(e.Dir, "streams")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("creating the directory of the streams: %w", err)
	}
	server, err := proctest.StartNATS(ctx, e.natsServer, dir, log)
	if err != nil {
		return err
	}
	e.OnClose(func(context.Context) error { _, err := server.Stop(stopTimeout); return err })
	conn, js, err := harness.Connect(server.URL)
	if err != nil {
		return err
	}
	e.OnClose(func(context.Context) error { conn.Close(); return nil })
	e.service = &harness.Service{
		Env: e.Env, Program: e.programs[oldVersion], DatabaseURL: func() string { return e.database }, QueueURL: server.URL,
		JS: js,
	}
	return nil
}

func (e *env) createFleet(ctx context.Context) (err error) {
	if e.fleet, err = e.service.CreateFleet(ctx, &e.options.Options); err != nil {
		return err
	}
	if err := e.migrate(ctx, oldVersion); err != nil {
		return err
	}
	return e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		e.readKeys, err = harness.InsertAPIKeys(ctx, conn, e.fleet.Teams[0].ID, readKeys)
		return err
	})
}

// migrate runs `migrate up` of a version, with the roles.
func (e *env) migrate(ctx context.Context, version string) error {
	cmd := exec.CommandContext(ctx, e.programs[version], "migrate", "up") //nolint:gosec // Built by the trial.
	cmd.Env = append(os.Environ(), "DATABASE_URL="+e.database, "DATABASE_ROLES="+e.roles.Prefix)
	for role, password := range e.roles.Passwords {
		cmd.Env = append(cmd.Env, "DATABASE_"+strings.ToUpper(string(role))+"_PASSWORD="+password)
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("migrating with the %s version: %w: %s", version, err, output)
	}
	return nil
}

func (e *env) startProcesses(ctx context.Context) error {
	e.kinds = []*kind{
		{name: "worker", args: []string{"ingest", "--no-receiver"}, role: schema.RoleWorker},
		{name: "receiver", args: []string{"ingest", "--no-worker"}, role: schema.RoleReceiver},
		{name: "api", args: []string{"api"}, role: schema.RoleAPI},
	}
	for _, k := range e.kinds {
		if k.role != schema.RoleWorker {
			var err error
			if k.balancer, err = startBalancer(ctx, func(s served) { e.stages.note(k.name, s) }); err != nil {
				return err
			}
			e.OnClose(k.balancer.close)
		}
		for range replicas {
			if err := e.start(ctx, k, oldVersion); err != nil {
				return err
			}
		}
	}
	e.service.Receiver, e.service.API = e.kinds[1].balancer.address, e.kinds[2].balancer.address
	return nil
}

// start starts a replica of a version and waits until it is ready.
func (e *env) start(ctx context.Context, k *kind, version string) error {
	k.started++
	log, err := e.LogFile(fmt.Sprintf("%s-%d-%s", k.name, k.started, version))
	if err != nil {
		return err
	}
	database, err := e.roles.URL(e.database, k.role)
	if err != nil {
		return err
	}
	variables := []string{
		"DATABASE_URL=" + database, "NATS_URL=" + e.service.QueueURL, "DRAIN_DELAY=" + e.options.Drain.String(),
		"STREAM_MAX_BYTES=2GiB", harness.UnlimitedRequests, harness.UnlimitedBytes,
	}
	s, err := proctest.StartService(ctx, e.programs[version], log, variables, k.args...)
	if err != nil {
		return fmt.Errorf("starting the %s version of %s: %w", version, k.name, err)
	}
	e.OnClose(func(context.Context) error { s.Kill(); return nil })
	r := &replica{Service: s, version: version, backend: &backend{version: version, address: s.Address, ops: s.Ops}}
	k.running = append(k.running, r)
	if k.balancer != nil {
		k.balancer.add(r.backend)
	}
	return nil
}

// replace replaces the oldest replica of every kind by one of a version, as a rolling update does: the new one is ready
// before the old one gets SIGTERM.
func (e *env) replace(ctx context.Context, version string) error {
	for _, k := range e.kinds {
		if err := e.start(ctx, k, version); err != nil {
			return err
		}
	}
	var group sync.WaitGroup
	for _, k := range e.kinds {
		r := k.running[0]
		k.running = k.running[1:]
		group.Go(func() {
			if _, err := r.Stop(stopTimeout); err != nil {
				e.Unexpected("stopping the %s version of %s: %v", r.version, k.name, err)
			}
			if k.balancer != nil {
				k.balancer.remove(r.backend)
			}
		})
	}
	group.Wait()
	return nil
}

// replaceAll replaces every replica by one of a version.
func (e *env) replaceAll(ctx context.Context, version string) error {
	for range replicas {
		if err := e.replace(ctx, version); err != nil {
			return err
		}
	}
	return nil
}

// hold lets the processes serve for a while, and checks that none has ended.
func (e *env) hold(ctx context.Context) error {
	if err := retry.Sleep(ctx, e.options.Hold); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	for _, k := range e.kinds {
		for _, r := range k.running {
			if r.Ended() {
				e.Unexpected("the %s version of %s ended by itself", r.version, k.name)
			}
		}
	}
	return nil
}
