package app

import (
	"context"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/config"
	"roomsensor/internal/ingest"
	"roomsensor/internal/ops"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// RunIngest runs a process that receives uploads, stores them, or both, until
// ctx ends. The error is a *config.ValueError where the configuration cannot be
// used.
func RunIngest(ctx context.Context, cfg config.Ingest, p Process) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	s, err := openStore(ctx, cfg.Database, store.Ingest)
	if err != nil {
		return err
	}
	i := &ingestProcess{
		Process: p, cfg: cfg, store: s,
		health: ops.NewHealth(p.Log), metrics: newRegistry(),
	}
	return supervise(ctx, p.Log, i.start)
}

type ingestProcess struct {
	Process
	cfg     config.Ingest
	store   *store.Store
	queue   *queue.Queue
	health  *ops.Health
	metrics *prometheus.Registry
}

// start opens the ops listener, then the receiver's, which answers from the
// first moment and asks senders to wait while the queue is away. A worker
// begins once there is something to work with.
func (i *ingestProcess) start(ctx context.Context, l *lifecycle) error {
	l.push("the database", closing(i.store.Close))
	i.Log.Info().Str("version", i.Version).Object("config", &i.cfg).Msg("starting ingest")
	q, conn, err := connectQueue(i.cfg.Queue, i.cfg.Stream, "roomsensor ingest", i.Log)
	if err != nil {
		return err
	}
	l.push("the queue", closing(conn.Close))
	i.queue = q
	i.need()
	if err := i.startOps(ctx, l, i.cfg.OpsAddr, i.health, i.metrics); err != nil {
		return err
	}
	work, err := i.work(ctx)
	if err != nil {
		return err
	}
	background(l, "ingest", work) //nolint:contextcheck // It outlives the start.
	i.serving(l, i.health)
	return nil
}

// need says what readiness depends on: a receiver needs the queue alone, so
// that uploads go on while the database is away.
func (i *ingestProcess) need() {
	needQueue(i.health, i.queue)
	if !i.cfg.NoWorker {
		needDatabase(i.health, i.cfg.Database, i.store)
	}
}

// work is what the process does until it is told to end. Receiver and worker
// then stop soft, both at once, each within its own time.
func (i *ingestProcess) work(ctx context.Context) (run func(context.Context) error, err error) {
	var listener net.Listener
	if !i.cfg.NoReceiver {
		if listener, err = i.listen(ctx, "receiver", i.cfg.IngestAddr); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		if !i.cfg.NoReceiver {
			group.Go(func() error { return i.receive(ctx, listener) })
		}
		if !i.cfg.NoWorker {
			group.Go(func() error { return i.land(ctx) })
			group.Go(func() error { return newMaintainer(i.store, &i.cfg.Maintenance, i.Log, i.metrics).run(ctx) })
		}
		group.Go(func() error { return i.noteDatabase(ctx) })
		return group.Wait()
	}, nil
}

func (i *ingestProcess) receive(ctx context.Context, listener net.Listener) error {
	receiver := ingest.NewReceiver(ingest.ReceiverConfig{
		Queue: i.queue, Keys: i.store, DocsURL: i.cfg.Docs(""), Log: i.Log, Metrics: i.metrics,
	})
	return receiver.Run(ctx, listener)
}

// land brings uploads into the tables once the queue and a migrated database
// are there; the worker itself waits for either that is lost later.
func (i *ingestProcess) land(ctx context.Context) error {
	worker := ingest.NewWorker(ingest.WorkerConfig{
		Queue: i.queue, Store: i.store, Log: i.Log, Metrics: i.metrics, Keep: i.cfg.Keep(),
		Rejects: roomsensor.RejectLimits{Keep: i.cfg.KeepRejects(), MaxBytes: i.cfg.MaxRejectBytes()},
	})
	if err := i.health.Await(ctx); err != nil {
		return nil //nolint:nilerr // It was told to end before it began.
	}
	worker.Run(ctx)
	return nil
}

// noteDatabase logs which edition the database is of, once it answers.
func (i *ingestProcess) noteDatabase(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		database, err := i.store.Database(ctx)
		if err == nil {
			i.Log.Info().Str("version", i.Version).Str("edition", database.Edition).
				Str("timescaledb", database.Version).Object("config", &i.cfg).Msg("found the database")
			return nil
		}
		if err := pause(ctx, attempt); err != nil {
			return nil //nolint:nilerr // It was told to end before.
		}
	}
}
