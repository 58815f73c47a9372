package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

// env runs everything that a trial needs.
type env struct {
	*harness.Env
	options Options
	service *harness.Service
	fleet   *harness.Fleet

	network  *network
	members  map[string]*container
	ops      map[string]string // ops addresses on this machine, by member
	database *pair
	// databaseURL and queueURL are for members.
	databaseURL, queueURL string
	readDatabaseURL       string // both servers, as standbys
	receivers, apis       *balancer
	archive               *archive
}

// newEnv starts everything and waits until it is ready. The caller closes the environment, also after an error.
func newEnv(ctx context.Context, o Options) (*env, error) {
	base, err := harness.NewEnv(o.Dir, o.Progress)
	if err != nil {
		return nil, err
	}
	e := &env{Env: base, options: o, members: map[string]*container{}, ops: map[string]string{}}
	e.service = &harness.Service{Env: base, AckWait: o.AckWait}
	for _, step := range []func(context.Context) error{
		e.prepare, e.startNetwork, e.startDatabase, e.startQueue, e.createFleet, e.createArchive, e.startProcesses,
	} {
		if err := step(ctx); err != nil {
			return e, err
		}
	}
	return e, e.await(ctx, "the cluster to be ready", e.checkCluster)
}

// Close removes everything. It first saves the logs of the containers if they are kept.
func (e *env) Close(ctx context.Context, keep bool) error {
	var errs []error
	if keep || e.options.Dir != "" {
		for _, c := range e.members {
			errs = append(errs, c.saveLog(context.WithoutCancel(ctx), e.Dir))
		}
	}
	return errors.Join(append(errs, e.Env.Close(ctx, keep))...)
}

// prepare finds the images and builds the program for operator commands.
func (e *env) prepare(ctx context.Context) (err error) {
	if e.options.Images, err = findImages(ctx, e.Logf); err != nil {
		return err
	}
	e.Logf("building roomsensor")
	e.service.Program, err = proctest.Build(ctx, e.Dir, proctest.Roomsensor)
	return err
}

func (e *env) startNetwork(ctx context.Context) (err error) {
	members := slices.Concat(databaseMembers, queueMembers)
	for _, r := range roles {
		members = append(members, r.members()...)
	}
	name := fmt.Sprintf("roomsensor-cluster-%d", os.Getpid())
	e.network, err = newNetwork(ctx, name, e.Dir, members)
	if e.network != nil {
		e.OnClose(e.network.remove)
	}
	return err
}

// start starts a member. It replaces a container of the same name.
func (e *env) start(ctx context.Context, s *spec) error {
	if old := e.members[s.member]; old != nil {
		if err := old.remove(ctx); err != nil {
			return err
		}
	}
	e.Logf("starting %s", s.member)
	c, err := e.network.start(ctx, s)
	if c != nil && e.members[s.member] == nil {
		e.OnClose(func(ctx context.Context) error { return e.members[s.member].remove(ctx) })
	}
	if c != nil {
		e.members[s.member] = c
	}
	return err
}

func (e *env) createFleet(ctx context.Context) (err error) {
	e.fleet, err = e.service.CreateFleet(ctx, &e.options.Options)
	return err
}

const (
	// recoveryTimeout is for everything that must recover by itself, on a busy machine.
	recoveryTimeout = 10 * time.Minute
	// checkPause is the time between two checks of whether it has.
	checkPause = 200 * time.Millisecond
)

// await waits until check returns nil. After recoveryTimeout it returns the last error of check.
func (e *env) await(ctx context.Context, what string, check func(context.Context) error) error {
	if err := harness.Await(ctx, recoveryTimeout, checkPause, check); err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}

// checkCluster returns nil if the queue has all its replicas, every process is ready, and every API reads from the
// standby.
func (e *env) checkCluster(ctx context.Context) error {
	if err := e.checkQueue(ctx); err != nil {
		return err
	}
	if err := e.checkReady(ctx); err != nil {
		return err
	}
	return e.checkStandbyUsed(ctx)
}

// reportEnded reports the members that ended by themselves.
func (e *env) reportEnded(ctx context.Context) error {
	for name, c := range e.members {
		running, err := c.isRunning(ctx)
		if err != nil {
			return err
		}
		if !running && !c.down {
			e.Unexpected("%s ended by itself", name)
		}
	}
	return nil
}

// role is a kind of process of roomsensor.
type role struct {
	name    string
	port    string // that it serves, in the image
	count   int
	command []string
}

var (
	apiRole      = role{"api", "8080", 2, []string{"api"}}
	receiverRole = role{"receiver", "8081", 2, []string{"ingest", "--no-worker"}}
	workerRole   = role{"worker", "", 4, []string{"ingest", "--no-receiver"}}
	roles        = []role{apiRole, workerRole, receiverRole} // A worker creates the stream.
)

func (r *role) members() (names []string) {
	for i := range r.count {
		names = append(names, fmt.Sprintf("%s-%d", r.name, i+1))
	}
	return names
}

// opsPort is the ops port of the image.
const opsPort = "9080"

// startProcesses starts all processes, and a balancer each for the APIs and the receivers.
func (e *env) startProcesses(ctx context.Context) (err error) {
	backends := map[string][]*backend{}
	for _, r := range roles {
		for _, member := range r.members() {
			b, err := e.startProcess(ctx, member, r.port, r.command)
			if err != nil {
				return err
			}
			backends[r.name] = append(backends[r.name], b)
		}
	}
	if e.apis, err = e.balance(ctx, backends[apiRole.name]); err != nil {
		return err
	}
	if e.receivers, err = e.balance(ctx, backends[receiverRole.name]); err != nil {
		return err
	}
	e.service.API, e.service.Receiver = e.apis.address, e.receivers.address
	return nil
}

func (e *env) balance(ctx context.Context, backends []*backend) (*balancer, error) {
	b, err := startBalancer(ctx, backends)
	if err == nil {
		e.OnClose(b.close)
	}
	return b, err
}

// startProcess starts a process of roomsensor like docker-compose.yml, with all servers of database and queue.
func (e *env) startProcess(ctx context.Context, member, port string, command []string) (*backend, error) {
	b := &backend{}
	s := &spec{
		member: member, image: e.options.Images.Service, command: command, ports: map[string]string{},
		options: []string{
			"--read-only", "--cap-drop", "ALL", "--env", "DATABASE_URL=" + e.databaseURL, "--env", "NATS_URL=" + e.queueURL,
			"--env", "STREAM_REPLICAS=" + strconv.Itoa(len(queueMembers)), "--env", "STREAM_MAX_BYTES=2GiB",
			"--env", harness.UnlimitedRequests, "--env", harness.UnlimitedBytes,
		},
	}
	for inside, outside := range map[string]*string{opsPort: &b.ops, port: &b.address} {
		if inside == "" {
			continue
		}
		address, err := proctest.FreeAddress()
		if err != nil {
			return nil, err
		}
		*outside, s.ports[inside] = address, address
	}
	if slices.Equal(command, apiRole.command) {
		s.options = append(s.options, "--env", "READ_DATABASE_URL="+e.readDatabaseURL)
	}
	err := e.start(ctx, s)
	b.member, e.ops[member] = e.members[member], b.ops
	return b, err
}

// checkReady returns nil if every process is ready.
func (e *env) checkReady(ctx context.Context) error {
	client := &http.Client{Timeout: requestTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	var waiting []string
	for member, ops := range e.ops {
		if !proctest.Answers(ctx, client, proctest.ReadyURL(ops)) {
			waiting = append(waiting, member)
		}
	}
	if len(waiting) > 0 {
		return fmt.Errorf("%s: not ready", strings.Join(waiting, ", "))
	}
	return nil
}
