package service

import (
	"context"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"roomsensor/internal/config"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/process"
	"roomsensor/internal/queue"
	"roomsensor/internal/receiver"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/internal/tracing"
	"roomsensor/internal/worker"
)

// RunIngest runs a process that receives uploads, stores them, or both, until ctx ends. Its error is a
// *config.ValueError if the configuration is invalid.
func RunIngest(ctx context.Context, cfg config.Ingest, o process.Options) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	s, err := process.OpenStore(ctx, cfg.Database, store.Ingest)
	if err != nil {
		return err
	}
	return process.Run(ctx, o, func(ctx context.Context, p *process.Process) error {
		return (&ingestProcess{Process: p, cfg: cfg, store: s, reserve: make([]byte, heapReserve)}).start(ctx)
	})
}

// heapReserve is the size in bytes of the GC ballast: allocated and never written, so that it takes no memory of the
// machine. Go collects garbage when the heap has doubled. A receiver or a worker keeps a few megabytes, which small
// uploads double several times a second. GOMEMLIMIT counts the reserve.
const heapReserve = 16 << 20

type ingestProcess struct {
	*process.Process
	cfg     config.Ingest
	store   *store.Store
	queue   *queue.Queue
	reserve []byte // of heapReserve bytes, held until the process ends

	tracer   *tracing.Tracer    // nil without tracing
	receiver *receiver.Receiver // nil with NO_RECEIVER
	worker   *worker.Worker     // nil with NO_WORKER
}

// start opens the ops listener and then the receiver, which answers from the start: 503 with Retry-After while the
// queue is unavailable. The worker starts once queue and database are available.
func (i *ingestProcess) start(ctx context.Context) error {
	i.OnClose("the database", process.Closing(i.store.Close))
	var err error
	if i.tracer, err = i.StartTracing(ctx, i.cfg.Tracing, "roomsensor-ingest"); err != nil {
		return err
	}
	i.Log.Info().Str("version", i.Version).Object("config", &i.cfg).Msg("starting ingest")
	q, conn, err := process.ConnectQueue(i.cfg.Queue, i.cfg.Stream, "roomsensor ingest", i.Log)
	if err != nil {
		return err
	}
	i.OnClose("the queue", process.Closing(conn.Close))
	i.queue = q
	i.ObservePools(i.store)
	if i.cfg.NoWorker {
		i.NeedQueue(i.cfg.Queue, q)
	} else {
		i.NeedRecordedQueue(i.cfg.Queue, q, i.store)
	}
	if !i.cfg.NoReceiver { // It needs the database for its keys only, so that uploads continue while that is unavailable.
		uses := httpedge.NewKeyUses(i.store.RecordIngestKeyUses, time.Now, i.Log)
		startKeyUses(i.Process, uses) //nolint:contextcheck // It outlives the start.
		i.receiver = i.newReceiver(uses)
		i.Health.Need("ingest keys", i.checkKeys)
	}
	if !i.cfg.NoWorker {
		i.NeedDatabase(i.cfg.Database, i.store)
		i.worker = i.newWorker()
		i.Health.Need("worker", i.checkWorker)
	}
	if err := i.StartOps(ctx, i.cfg.OpsAddr, &i.cfg); err != nil {
		return err
	}
	var listener net.Listener
	if !i.cfg.NoReceiver {
		if listener, err = i.Bind(ctx, "receiver", "ingest-addr", i.cfg.IngestAddr); err != nil {
			return err
		}
	}
	i.Background("ingest", func(ctx context.Context) error { //nolint:contextcheck // It outlives the start.
		return i.work(ctx, listener)
	})
	i.Serving(time.Duration(i.cfg.DrainDelay))
	return nil
}

// work runs receiver and worker until ctx ends. Both then stop gracefully at the same time, each within its own
// timeout.
func (i *ingestProcess) work(ctx context.Context, listener net.Listener) error {
	group, ctx := errgroup.WithContext(ctx)
	if !i.cfg.NoReceiver {
		group.Go(func() error { return i.receiver.Run(ctx, listener) })
	}
	if !i.cfg.NoWorker {
		group.Go(func() error { return i.runWorker(ctx) })
		group.Go(func() error {
			newMaintainer(i.store, &i.cfg.Maintenance, i.Log, i.Metrics).run(ctx)
			return nil
		})
		group.Go(func() error {
			metrics := newDatabaseMetrics(i.Metrics)
			if err := i.Health.Await(ctx); err == nil {
				metrics.run(ctx, i.store, i.Log)
			}
			return nil
		})
	}
	group.Go(func() error { return i.logDatabase(ctx) })
	return group.Wait() //nolint:wrapcheck // Its parts say what failed.
}

func (i *ingestProcess) newReceiver(uses *httpedge.KeyUses) *receiver.Receiver {
	return receiver.New(receiver.Config{
		Queue: i.queue, Keys: i.store, KeyUses: uses, Database: i.store, DocsURL: i.cfg.Docs(""),
		Log: i.Log, LogSample: i.cfg.LogAccessSample, Metrics: i.Metrics, Tracer: i.tracer,
		Proxies: i.cfg.TrustedProxies.Prefixes,
		Memory:  int64(i.cfg.UploadMemory), RequestsPerSecond: i.cfg.UploadRequestsPerSecond,
		BytesPerSecond: int64(i.cfg.UploadBytesPerSecond),
	})
}

// checkKeys makes the process not ready until its receiver has read the ingest keys once. Before, it would refuse
// uploads that other receivers accept while the database is unavailable.
func (i *ingestProcess) checkKeys(ctx context.Context) error {
	select {
	case <-i.receiver.KeysLoaded():
		return nil
	case <-ctx.Done():
		return &process.UnavailableError{Reason: "were not read yet: the database is unavailable or not migrated"}
	}
}

func (i *ingestProcess) newWorker() *worker.Worker {
	return worker.New(worker.Config{
		Queue: i.queue, Store: i.store, Log: i.Log, Metrics: i.Metrics, Tracer: i.tracer,
		Keep: time.Duration(i.cfg.StreamKeep),
		Rejects: roomsensor.RejectLimits{
			Keep: time.Duration(i.cfg.RejectsKeep), MaxBytes: int64(i.cfg.RejectsMaxBytes),
			TeamMaxBytes: int64(i.cfg.TeamMaxBytes()),
		},
		ParkAfter: i.cfg.ParkAfter,
	})
}

// checkWorker makes the process not ready while its worker stores next to nothing.
func (i *ingestProcess) checkWorker(context.Context) error {
	if i.worker.Holds() {
		return &process.UnavailableError{
			Reason: "holds uploads in the queue, because the database refuses most of them: see the log for the cause",
		}
	}
	return nil
}

// runWorker stores uploads once the queue and a migrated database are available. The worker itself waits for a
// dependency that is lost later.
func (i *ingestProcess) runWorker(ctx context.Context) error {
	if err := i.Health.Await(ctx); err != nil {
		return nil //nolint:nilerr // The process stopped before the worker started.
	}
	i.worker.Run(ctx)
	return nil
}

// databaseBackoff is the delay between two attempts to read the edition of the database.
var databaseBackoff = retry.Backoff{First: 250 * time.Millisecond, Max: 5 * time.Second}

// logDatabase logs the edition of the database once it answers.
func (i *ingestProcess) logDatabase(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		database, err := i.store.Database(ctx)
		if err == nil {
			i.LogDatabase(database, &i.cfg)
			return nil
		}
		if err := databaseBackoff.Sleep(ctx, attempt); err != nil {
			return nil //nolint:nilerr // The process stopped before the database answered.
		}
	}
}
