package mqtt

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/queue"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

// sourcesEvery is the interval at which the state of the sources is read, and the limit of a query. A change takes
// effect within 5 seconds (A14.1).
const sourcesEvery = 2 * time.Second

// Config is the configuration of a bridge.
type Config struct {
	Broker        config.Broker
	Subscriptions []config.Subscription
	Version       byte   // of MQTT: 4 for 3.1.1, or 5
	Share         string // group of a shared subscription; empty for none
	Replica       string // of this process in the group
	Retained      bool   // take retained messages too

	Queue    *queue.Queue
	Database Database
	Log      zerolog.Logger
	Metrics  prometheus.Registerer
}

// Database has the sources. Its method is safe for concurrent use.
type Database interface {
	Sources(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]roomsensor.Source, error)
}

// Bridge passes the messages of a broker to sources.
type Bridge struct {
	Config
	sessions []*session
	sources  sources
	metrics  metrics
}

// New makes a bridge and registers its metrics.
func New(c Config) *Bridge {
	b := &Bridge{Config: c, sources: sources{known: make(chan struct{})}, metrics: newMetrics(c.Metrics)}
	for _, subscription := range c.Subscriptions {
		i := slices.IndexFunc(b.sessions, func(s *session) bool { return s.source == subscription.Source })
		if i < 0 {
			i = len(b.sessions)
			client := "roomsensor-" + subscription.Source.String()
			if c.Share != "" {
				client += "-" + c.Replica
			}
			b.sessions = append(b.sessions, &session{
				Bridge: b, source: subscription.Source, client: client, logged: map[string]time.Time{}, problem: ErrNotTried,
			})
		}
		b.sessions[i].filters = append(b.sessions[i].filters, subscription.Filter)
	}
	return b
}

// ErrNotTried is the problem of a session before its first connection.
var ErrNotTried = errors.New("was not checked yet")

// Run passes messages until ctx ends. It connects once it has read the sources: of a source that is not known, it would
// drop messages. At the end, it finishes what it has begun to store.
func (b *Bridge) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { b.Queue.TrackBacklogs(ctx, b.Log) })
	group.Go(func() { retry.Every(ctx, sourcesEvery, b.readSources) })
	for _, s := range b.sessions {
		group.Go(func() {
			select {
			case <-b.sources.known:
				s.run(ctx)
			case <-ctx.Done():
			}
		})
	}
	group.Wait()
}

// SourcesKnown is closed once the sources were read.
func (b *Bridge) SourcesKnown() <-chan struct{} { return b.sources.known }

// Problem returns why a source has no connection to the broker; nil if all have one.
func (b *Bridge) Problem() error {
	for _, s := range b.sessions {
		s.mu.Lock()
		problem := s.problem
		s.mu.Unlock()
		if problem != nil {
			return problem
		}
	}
	return nil
}

// sources has the sources as they were last read.
type sources struct {
	mu    sync.Mutex
	byID  map[uuid.UUID]roomsensor.Source
	known chan struct{} // closed once byID is set
}

// readSources reads the sources again. While the database is unavailable, the last state counts.
func (b *Bridge) readSources(ctx context.Context) {
	ids := make([]uuid.UUID, len(b.sessions))
	for i, s := range b.sessions {
		ids[i] = s.source
	}
	ctx, cancel := context.WithTimeout(ctx, sourcesEvery)
	defer cancel()
	read, err := b.Database.Sources(ctx, ids)
	if err != nil {
		b.Log.Debug().Err(err).Msg("could not read the sources, retrying")
		return
	}
	b.sources.mu.Lock()
	defer b.sources.mu.Unlock()
	if b.sources.byID == nil {
		close(b.sources.known)
	}
	b.sources.byID = read
}

// of returns a source that takes messages; nil for one that is disabled, was deleted or never was there.
func (s *sources) of(id uuid.UUID) *roomsensor.Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	source, ok := s.byID[id]
	if !ok || source.DisabledAt != nil {
		return nil
	}
	return &source
}

// The results of messages.
const (
	resultStored   = "stored"
	resultRetained = "retained"
	resultTooLarge = "too_large"
	resultNoSource = "no_source"
	resultDisabled = "disabled"
)

// metrics are the Prometheus metrics of a bridge.
type metrics struct {
	messages  *prometheus.CounterVec
	connected prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer) metrics {
	factory := promauto.With(registry)
	m := metrics{
		messages: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "roomsensor_mqtt_messages_total",
			Help: "Messages of the broker, by result: stored in the queue, or dropped because they were retained or too " +
				"large, no subscription of the configuration has their topic, or their source is disabled.",
		}, []string{"result"}),
		connected: factory.NewGauge(prometheus.GaugeOpts{
			Name: "roomsensor_mqtt_connected_sources", Help: "Sources with a connection to the broker.",
		}),
	}
	for _, result := range []string{resultStored, resultRetained, resultTooLarge, resultNoSource, resultDisabled} {
		m.messages.WithLabelValues(result)
	}
	return m
}
