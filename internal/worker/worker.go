package worker

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"roomsensor/internal/queue"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/source"
	"roomsensor/internal/tracing"
)

const (
	// writers is the number of batches that a worker writes at the same time: one is prepared while another one commits.
	writers = 2
	// DefaultStopTimeout limits the time to store the fetched uploads when a worker stops, within the 20 seconds that
	// a process has to stop.
	DefaultStopTimeout = 15 * time.Second
)

// backoff is the delay after consecutive failures of the queue or the database. The first delay is short enough to hide
// a failover, and the longest bounds how long a worker sleeps after an outage has ended.
var backoff = retry.Backoff{First: 200 * time.Millisecond, Max: 10 * time.Second}

// Store is the database as a worker uses it.
type Store interface {
	tables
	chunks
	shareStore
	// TrimRejects deletes the expired rejects, and the oldest ones beyond the size limits. It returns how many it deleted
	// and kept, also where it fails midway.
	TrimRejects(ctx context.Context, limits roomsensor.RejectLimits) (roomsensor.RejectTrim, error)
	// RecordSources adds what became of messages of some distinct sources.
	RecordSources(ctx context.Context, counts []roomsensor.SourceCount) error
	// PurgeFeed deletes what the change feed needs no more.
	PurgeFeed(ctx context.Context) error
}

// Config is the configuration of a worker. Keep, Rejects, ParkAfter and StopTimeout have defaults.
type Config struct {
	Queue   *queue.Queue
	Store   Store
	Log     zerolog.Logger
	Metrics prometheus.Registerer
	Tracer  *tracing.Tracer     // nil means no tracing
	Random  func(n int64) int64 // for the jitter of delays, see retry.Backoff

	Keep        time.Duration           // how long the stream keeps stored uploads
	Rejects     roomsensor.RejectLimits // how many rejects the database keeps
	ParkAfter   int                     // deliveries after which a refused upload becomes a reject
	StopTimeout time.Duration           // for storing what the worker holds when it stops
}

// Worker moves uploads from the queue into the database. Any number of workers, in any number of processes, may share
// the queue.
type Worker struct {
	Config
	writer  writer
	metrics *metrics
	backlog backlog
	shares  streamShares
	sources sourceCounts
	// laneBytes is the size of a batch of the priority lane.
	laneBytes int
}

// New returns a worker and registers its metrics.
func New(c Config) *Worker {
	c.StopTimeout = cmp.Or(c.StopTimeout, DefaultStopTimeout)
	c.Keep = cmp.Or(c.Keep, queue.DefaultKeep)
	c.Rejects = cmp.Or(c.Rejects, DefaultRejectLimits)
	c.ParkAfter = cmp.Or(c.ParkAfter, DefaultParkAfter)
	o := &outcomes{parkAfter: c.ParkAfter}
	m := newMetrics(c.Metrics, o, c.Keep)
	return &Worker{
		Config:  c,
		writer:  writer{c.Store, c.Log, o, &chunkLimit{store: c.Store}, &source.Mappings{}, m.changed},
		metrics: m,
		backlog: backlog{minAge: backlogAge, minUploads: backlogUploads},

		laneBytes: defaultLaneBytes,
	}
}

// Run works until ctx ends. Then it fetches nothing more and stores and acknowledges what it holds, for at most
// StopTimeout; after that it returns the rest to the queue. It waits for an unavailable queue or database and continues
// by itself.
func (w *Worker) Run(ctx context.Context) {
	hard, cancel := hardStop(ctx, w.StopTimeout)
	defer cancel()
	deliveries, batches := make(chan *delivery), make(chan *batch)
	var group sync.WaitGroup
	group.Go(func() { w.fetch(ctx, hard, deliveries) })
	group.Go(func() { collect(deliveries, batches, newBatch) })
	for range writers {
		group.Go(func() { w.writeBatches(ctx, hard, batches) })
	}
	group.Go(func() { w.runPriorityLane(ctx) })
	group.Go(func() { w.watchQueue(ctx) })
	group.Go(func() { w.purgeStream(ctx) })
	group.Go(func() { w.trimRejects(ctx) })
	group.Go(func() { w.purgeFeed(ctx) })
	group.Go(func() { w.recordSources(ctx) })
	group.Wait()
	w.storeSourceCounts(hard)
	if err := w.Queue.Flush(hard); err != nil {
		w.Log.Warn().Err(err).Msg("could not flush final acks; messages will be redelivered (harmless)")
	}
}

// hardStop returns a context that ends some time after ctx ended.
func hardStop(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(after, cancel)
		context.AfterFunc(hard, func() { timer.Stop() })
	})
	return hard, func() {
		stop()
		cancel()
	}
}

// fetch sends the deliveries of the queue to out until ctx ends, then closes out. It opens the consumer again whenever
// it is gone, as after a replay of the stream.
func (w *Worker) fetch(ctx, hard context.Context, out chan<- *delivery) {
	defer close(out)
	for attempt := 0; ctx.Err() == nil; attempt++ {
		consumer, err := w.Queue.Consume(ctx)
		if err == nil {
			attempt = 0
			err = w.fetchFrom(ctx, hard, consumer, out)
		}
		if ctx.Err() == nil {
			w.Log.Warn().Err(err).Msg("could not fetch from the queue, trying again")
			_ = w.jittered(backoff).Sleep(ctx, attempt) // The loop ends with ctx.
		}
	}
}

// fetchFrom sends deliveries to out until ctx ends or the consumer is gone, and returns the reason. At the end it sends
// those that were fetched already, so that none of them waits for its redelivery.
func (w *Worker) fetchFrom(ctx, hard context.Context, consumer *queue.Consumer, out chan<- *delivery) error {
	reason := w.fetchAll(ctx, consumer, out)
	consumer.Drain()
	_ = w.fetchAll(hard, consumer, out) // It ends when nothing is left.
	consumer.Stop()
	return reason
}

// fetchAll sends deliveries to out until Next fails, and returns its error.
func (w *Worker) fetchAll(ctx context.Context, consumer *queue.Consumer, out chan<- *delivery) error {
	for {
		next, err := consumer.Next(ctx)
		switch {
		case errors.Is(err, queue.ErrNoMetadata):
			w.Log.Error().Err(err).Msg("ignoring a message without JetStream metadata")
			continue
		case err != nil:
			return err
		}
		w.backlog.observe(next)
		out <- received(next)
	}
}

// Holds reports whether the worker keeps uploads in the queue because the database refuses most of them. It resumes by
// itself.
func (w *Worker) Holds() bool { return w.writer.outcomes.holds() }

func (w *Worker) jittered(b retry.Backoff) retry.Backoff {
	b.Random = w.Random
	return b
}

// writeBatches writes batches until there are no more. After a failure of the database, and while it refuses most
// uploads and stores no other ones, it waits, longer each time, so that it does not overload a database that recovers.
func (w *Worker) writeBatches(ctx, hard context.Context, batches <-chan *batch) {
	attempt := 0
	for b := range batches {
		results, err := w.writeBatch(hard, b)
		delay := func(*delivery) time.Duration { return w.jittered(backoff).Delay(attempt) }
		switch {
		case ctx.Err() != nil: // The worker stops, and another one may take the uploads at once.
			delay = func(*delivery) time.Duration { return 0 }
		case isRefused(err):
			delay = func(d *delivery) time.Duration { return w.jittered(refusedBackoff).Delay(d.deliveries - 1) }
		}
		w.settle(results, delay)
		w.recordShares(hard, results)
		w.sources.count(results)
		if err == nil || (isRefused(err) && (!w.Holds() || w.writer.outcomes.stores())) {
			attempt = 0
			continue
		}
		_ = w.jittered(backoff).Sleep(ctx, attempt) // Without a wait when the worker stops.
		attempt++
	}
}

// writeBatch stores a batch and returns a result for each of its deliveries.
func (w *Worker) writeBatch(ctx context.Context, b *batch) ([]result, error) {
	started := time.Now()
	ctx, traced := beginSpans(ctx, w.Tracer, b)
	stop := extendWhile(ctx, b)
	results, err := w.writer.write(ctx, b.deliveries)
	stop()
	if err == nil {
		w.writer.outcomes.countBatch(results)
	} else {
		w.writer.outcomes.countFailure(err)
	}
	w.report(b, results, err, started, traced)
	traced.end(results, err)
	return results, err
}

// extendWhile extends the deliveries of a batch until stop is called, so that they do not go to another worker.
func extendWhile(ctx context.Context, b *batch) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for retry.Sleep(ctx, extendEvery) == nil {
			b.extend()
		}
	}()
	return func() {
		cancel()
		<-stopped
	}
}

// settle acknowledges the stored deliveries, after the commit and never before, and returns the others to the queue,
// which delivers them again after a delay. The delays of a batch differ, so that its deliveries do not come back
// together. A lost acknowledgement causes a redelivery, which changes nothing.
func (w *Worker) settle(results []result, delay func(*delivery) time.Duration) {
	var failed error
	for i := range results {
		d := results[i].delivery
		settle := d.message.Ack
		if !results[i].stored {
			settle = func() error { return d.message.Nak(delay(d)) }
			w.writer.outcomes.countReturned(d.deliveries)
		}
		if err := settle(); err != nil {
			failed = err
		}
	}
	if failed != nil {
		w.Log.Warn().Err(failed).Msg("could not settle a batch; messages will be redelivered (harmless)")
	}
}
