package burst

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/queue"
	"roomsensor/internal/simulate"
	"roomsensor/schema"
	"roomsensor/test/harness"
	"roomsensor/test/ledger"
	"roomsensor/test/proctest"
)

const (
	// stopTimeout is for a process to end after SIGTERM.
	stopTimeout = 20 * time.Second
	// connectTimeout is for the first connection to NATS.
	connectTimeout = 30 * time.Second
	// readKeys share the API requests: the limiter allows 600 requests per key in 10 minutes (decision 25).
	readKeys     = 40
	pollInterval = 20 * time.Millisecond
)

// env is the installation of one phase: a database, a NATS server, and a team with its devices.
type env struct {
	*harness.Env
	trial   *trial
	service *harness.Service
	nats    *proctest.NATS
	queue   *queue.Queue
	mu      sync.Mutex
	workers []*proctest.Service // the oldest first

	ledger     *ledger.Ledger
	freshFleet simulate.Fleet // devices that were never offline
	fresh      []uuid.UUID    // their ids
	ingestKey  string
	readKeys   []string
}

// newEnv starts an installation without processes of roomsensor. The caller closes it, also after an error.
func (t *trial) newEnv(ctx context.Context, name string) (*env, error) {
	base, err := harness.NewEnv(filepath.Join(t.Dir, name), t.options.Progress)
	if err != nil {
		return nil, err
	}
	e := &env{Env: base, trial: t, ledger: ledger.New(t.load.requests)}
	for _, step := range []func(context.Context) error{e.openDatabase, e.openQueue, e.insertTeam} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, e.Close(ctx, true))
		}
	}
	return e, nil
}

func (e *env) openDatabase(ctx context.Context) error {
	address, err := e.CreateDatabase(ctx, e.trial.server)
	if err != nil {
		return err
	}
	e.service = &harness.Service{Env: e.Env, DatabaseURL: func() string { return address }}
	return schema.Up(ctx, address, schema.Layout{})
}

func (e *env) openQueue(ctx context.Context) error {
	log, err := e.LogFile("nats")
	if err != nil {
		return err
	}
	if e.nats, err = proctest.StartNATS(ctx, e.trial.programs.NATSServer, e.Dir, log); err != nil {
		return err
	}
	e.OnClose(func(context.Context) error { _, err := e.nats.Stop(stopTimeout); return err })
	e.service.QueueURL = e.nats.URL
	conn, js, err := harness.Connect(e.nats.URL)
	if err != nil {
		return err
	}
	e.OnClose(func(context.Context) error { conn.Close(); return nil })
	e.service.JS = js
	config := queue.Config{Replicas: 1, MaxBytes: queue.DefaultMaxBytes}
	if e.queue, err = queue.New(&queue.Conn{Conn: conn}, config); err != nil {
		return err
	}
	return harness.Await(ctx, connectTimeout, pollInterval, e.queue.Declare)
}

// freshTag is the metadata tag of devices that were never offline.
const freshTag = "fresh"

func (e *env) insertTeam(ctx context.Context) error {
	var devices []harness.Device
	for _, u := range e.trial.load.units {
		devices = append(devices, harness.Device{ID: u.Device, HardwareID: u.HardwareID, Name: u.HardwareID})
	}
	e.freshFleet = simulate.Fleet{Devices: e.trial.options.Fresh, FirstHardwareID: firstFresh}
	for i := range e.freshFleet.Devices {
		unit := e.freshFleet.HardwareID(i)
		e.fresh = append(e.fresh, deviceID(unit))
		devices = append(devices, harness.Device{
			ID: deviceID(unit), HardwareID: unit, Name: unit, Metadata: map[string]string{freshTag: "true"},
		})
	}
	return e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		team, err := harness.InsertTeam(ctx, conn, "Burst", devices)
		if err != nil {
			return err
		}
		if e.ingestKey, err = harness.InsertIngestKey(ctx, conn, team); err != nil {
			return err
		}
		e.readKeys, err = harness.InsertAPIKeys(ctx, conn, team, readKeys)
		return err
	})
}

// start starts a command of roomsensor and waits until it is ready.
func (e *env) start(ctx context.Context, name string, args ...string) (*proctest.Service, error) {
	log, err := e.LogFile(name)
	if err != nil {
		return nil, err
	}
	variables := []string{"DATABASE_URL=" + e.service.DatabaseURL(), "NATS_URL=" + e.nats.URL, "LOG_LEVEL=warn"}
	variables = append(variables, harness.UnlimitedRequests, harness.UnlimitedBytes)
	s, err := proctest.StartService(ctx, e.trial.programs.Roomsensor, log, variables, args...)
	if err != nil {
		return nil, err
	}
	e.OnClose(func(context.Context) error { s.Kill(); return nil })
	return s, nil
}

// startWorkers starts n workers at once.
func (e *env) startWorkers(ctx context.Context, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	for range n {
		group.Go(func() error { return e.startWorker(ctx) })
	}
	return group.Wait() //nolint:wrapcheck // Wrapped by start.
}

func (e *env) startWorker(ctx context.Context) error {
	w, err := e.start(ctx, "workers", "ingest", "--no-receiver")
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.workers = append(e.workers, w)
	return nil
}

// workerPeak returns the greatest peak memory of the running workers, in MiB.
func (e *env) workerPeak() (greatest float64, err error) {
	for _, w := range e.workers {
		peak, err := peakMiB(w)
		if err != nil {
			return 0, err
		}
		greatest = max(greatest, peak)
	}
	return greatest, nil
}

// verify compares the tables with the readings of the late devices. All their uploads must be stored.
func (e *env) verify(ctx context.Context) (v ledger.Verdict, err error) {
	for _, r := range e.trial.load.requests {
		e.ledger.Note(r.Uploads, ledger.OK)
	}
	tables, err := e.service.ReadTables(ctx, e.fresh)
	if err != nil {
		return v, err
	}
	found, v := e.ledger.Compare(tables.Readings)
	v.Add(found.Hours(tables.Hours))
	v.Add(e.ledger.Rejects(tables.Rejects))
	e.Logf("%d readings stored: %s", len(tables.Readings), v.String())
	return v, nil
}

func peakMiB(s *proctest.Service) (float64, error) {
	_, peak, err := s.Memory()
	return float64(peak>>10) / (1 << 10), err
}
