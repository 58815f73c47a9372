package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

const (
	// DefaultWriters is how many batches a worker stores at once: while one
	// commits, another one is on its way.
	DefaultWriters = 2
	// DefaultStopTimeout is how long a worker may take to store what it holds
	// when it is told to stop, within the 20 seconds that a stop may take.
	DefaultStopTimeout = 15 * time.Second
)

// WorkerConfig is what a worker needs. Keep, Rejects, Writers and StopTimeout
// have defaults.
type WorkerConfig struct {
	Queue   *queue.Queue
	Store   Store
	Log     zerolog.Logger
	Metrics prometheus.Registerer

	Keep        time.Duration // how long the stream keeps what is stored
	Rejects     roomsensor.RejectLimits
	Writers     int
	StopTimeout time.Duration
}

// Worker brings uploads from the queue into the tables. Any number of workers,
// in any number of processes, may share the queue.
type Worker struct {
	WorkerConfig
	lander   lander
	metrics  *workerMetrics
	position position
}

// NewWorker makes a worker and registers its metrics.
func NewWorker(c WorkerConfig) *Worker {
	if c.Writers <= 0 {
		c.Writers = DefaultWriters
	}
	if c.StopTimeout <= 0 {
		c.StopTimeout = DefaultStopTimeout
	}
	if c.Keep <= 0 {
		c.Keep = queue.DefaultKeep
	}
	if c.Rejects == (roomsensor.RejectLimits{}) {
		c.Rejects = DefaultRejectLimits
	}
	w := &Worker{WorkerConfig: c, metrics: newWorkerMetrics(c.Metrics)}
	w.position.age, w.position.uploads = backlogAge, backlogUploads
	w.lander = lander{units: c.Store, write: w.write, ping: c.Store.Ping, log: c.Log}
	return w
}

func (w *Worker) write(ctx context.Context, b roomsensor.Batch) error {
	changed, err := w.Store.WriteBatch(ctx, b)
	w.metrics.changed.Add(float64(changed))
	return err
}

// Run works until ctx ends. Then it stops soft, taking in no more and storing
// and acknowledging what it holds, and hard after StopTimeout, giving back
// what is left. It waits for a queue or a database that is away and comes back
// by itself.
func (w *Worker) Run(ctx context.Context) {
	hard, cancel := hardStop(ctx, w.StopTimeout)
	defer cancel()
	deliveries, batches := make(chan *delivery), make(chan *batch)
	var group sync.WaitGroup
	group.Go(func() { w.watch(ctx) })
	group.Go(func() { w.purge(ctx) })
	group.Go(func() { w.trim(ctx) })
	group.Go(func() { w.passBacklogs(ctx) })
	group.Go(func() { w.read(ctx, hard, deliveries) })
	group.Go(func() { collect(deliveries, batches) })
	for range w.Writers {
		group.Go(func() { w.store(ctx, hard, batches) })
	}
	group.Wait()
	if err := w.Queue.Flush(hard); err != nil {
		w.Log.Warn().Err(err).Msg("the last acknowledgements may be lost; what they are of comes again and changes nothing")
	}
}

// hardStop is a context that ends some time after ctx did.
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

// read hands on what the queue delivers until ctx ends, then closes out. It
// opens the consumer again whenever it is gone, as when the stream is replayed.
func (w *Worker) read(ctx, hard context.Context, out chan<- *delivery) {
	defer close(out)
	var pause backoff
	for ctx.Err() == nil {
		messages, err := w.Queue.Messages(ctx)
		if err == nil {
			pause.reset()
			err = w.readFrom(ctx, hard, messages, out)
		}
		if ctx.Err() == nil {
			w.Log.Warn().Err(err).Msg("the queue does not deliver; trying again")
			sleep(ctx, pause.next())
		}
	}
}

// readFrom hands on messages until ctx ends or the consumer is gone. In the
// end it hands on what was fetched already, so that nothing waits for another
// worker that this one could store.
func (w *Worker) readFrom(ctx, hard context.Context, messages jetstream.MessagesContext, out chan<- *delivery) error {
	var gone error
	for gone == nil {
		gone = w.readOne(ctx, messages, out)
	}
	messages.Drain()
	for {
		err := w.readOne(hard, messages, out)
		if err != nil {
			messages.Stop()
			return gone
		}
	}
}

func (w *Worker) readOne(ctx context.Context, messages jetstream.MessagesContext, out chan<- *delivery) error {
	msg, err := messages.Next(jetstream.NextContext(ctx))
	if err != nil {
		return fmt.Errorf("reading from the queue: %w", err)
	}
	d, err := received(msg)
	if err != nil { // It is no message of a stream.
		w.Log.Error().Err(err).Str("subject", msg.Subject()).Msg("a message cannot be told apart; it is left alone")
		return nil
	}
	w.position.note(d)
	out <- d
	return nil
}

// store stores batches until there are no more. After a failure that may pass
// it pauses, longer each time, so that a database that is away is not hammered.
func (w *Worker) store(ctx, hard context.Context, batches <-chan *batch) {
	var pause backoff
	for b := range batches {
		if err := w.storeBatch(hard, b); err == nil {
			pause.reset()
			w.settle(b, 0)
			continue
		}
		delay := pause.next()
		if ctx.Err() != nil {
			delay = 0 // Another worker may take it at once.
		}
		w.settle(b, delay)
		sleep(ctx, delay)
	}
}

func (w *Worker) storeBatch(ctx context.Context, b *batch) error {
	started := time.Now()
	if ackEarly {
		b.ackAll()
	}
	stop := prolongWhile(b)
	outcomes, err := w.lander.land(ctx, b.deliveries)
	stop()
	w.note(b, outcomes, err, started)
	return err
}

// prolongWhile keeps a batch from going to another worker until stop is called.
func prolongWhile(b *batch) (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(prolongEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				b.prolong()
			}
		}
	}()
	return func() {
		close(done)
		<-stopped
	}
}

// settle tells the queue what became of a batch: what is stored is acknowledged,
// after the commit and never before; the rest is to come again after a delay. An acknowledgement that gets
// lost costs a second delivery, which changes nothing.
func (w *Worker) settle(b *batch, delay time.Duration) {
	var failed error
	for _, d := range b.deliveries {
		var err error
		switch {
		case d.stored:
			err = d.msg.Ack()
		case delay > 0:
			err = d.msg.NakWithDelay(delay)
		default:
			err = d.msg.Nak()
		}
		if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			failed = err
		}
	}
	if failed != nil {
		w.Log.Warn().Err(failed).Msg("the queue was not told what became of a batch; it will deliver it again")
	}
}
