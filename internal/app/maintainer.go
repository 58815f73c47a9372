package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/store"
)

// maintainEvery is how often a worker looks whether there is something to do.
const maintainEvery = 5 * time.Minute

// maintainer puts chunks in order while the hour is right.
type maintainer struct {
	store    *store.Store
	config   *config.Maintenance
	log      zerolog.Logger
	now      func() time.Time
	waiting  prometheus.Gauge
	ordered  prometheus.Counter
	deferred prometheus.Counter
	seconds  prometheus.Histogram
}

func newMaintainer(
	s *store.Store, cfg *config.Maintenance, log zerolog.Logger, registry prometheus.Registerer,
) *maintainer {
	factory := promauto.With(registry)
	return &maintainer{
		store: s, config: cfg, log: log, now: time.Now,
		waiting: factory.NewGauge(prometheus.GaugeOpts{
			Name: "roomsensor_maintenance_chunks_waiting",
			Help: "Chunks that stopped changing and are not in order, when last looked for.",
		}),
		ordered: factory.NewCounter(prometheus.CounterOpts{
			Name: "roomsensor_maintenance_chunks_ordered_total", Help: "Chunks that were put in the order of their key.",
		}),
		deferred: factory.NewCounter(prometheus.CounterOpts{
			Name: "roomsensor_maintenance_chunks_deferred_total", Help: "Tries that gave way, as a chunk was in use.",
		}),
		seconds: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "roomsensor_maintenance_chunk_seconds", Help: "Time for which a chunk was locked, and the wait for its lock.",
			Buckets: prometheus.ExponentialBuckets(0.1, 2, 12),
		}),
	}
}

// run looks for something to do until ctx ends.
func (m *maintainer) run(ctx context.Context) error {
	return every(ctx, maintainEvery, func() {
		if err := m.round(ctx); err != nil && ctx.Err() == nil {
			m.log.Warn().Err(err).Msg("chunks were not put in order, trying again later")
		}
	})
}

// round puts chunks in order, one after another, while the hour is right.
func (m *maintainer) round(ctx context.Context) error {
	if !m.config.Maintains(m.now()) {
		return nil
	}
	chunks, err := m.store.ChunksToOrder(ctx, m.now().Add(-m.config.SettledAfter()))
	if err != nil {
		return err
	}
	for i, chunk := range chunks {
		m.waiting.Set(float64(len(chunks) - i))
		if !m.config.Maintains(m.now()) {
			return nil
		}
		done, err := orderChunk(ctx, m.store, chunk)
		if err != nil {
			return err
		}
		m.note(&done)
	}
	m.waiting.Set(0)
	return nil
}

func (m *maintainer) note(done *OrderedChunk) {
	if !done.Ordered {
		m.deferred.Inc()
		m.log.Info().Str("chunk", done.Chunk).Str("reason", *done.Reason).Msg("a chunk was not put in order")
		return
	}
	m.ordered.Inc()
	m.seconds.Observe(done.Seconds)
	m.log.Info().Str("chunk", done.Chunk).Float64("seconds", done.Seconds).Msg("put a chunk in order")
}
