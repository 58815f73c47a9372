package service

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/retry"
	"roomsensor/internal/store"
)

// maintenanceInterval is how often a worker looks for chunks to rewrite.
const maintenanceInterval = 5 * time.Minute

// maintainer rewrites settled chunks in primary-key order during the maintenance window.
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
			Help: "Settled chunks that are not in primary-key order, at the last check.",
		}),
		ordered: factory.NewCounter(prometheus.CounterOpts{
			Name: "roomsensor_maintenance_chunks_ordered_total", Help: "Chunks rewritten in primary-key order.",
		}),
		deferred: factory.NewCounter(prometheus.CounterOpts{
			Name: "roomsensor_maintenance_chunks_deferred_total", Help: "Attempts given up because a chunk was in use.",
		}),
		seconds: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "roomsensor_maintenance_chunk_seconds",
			Help:    "Time to lock and rewrite a chunk, including the wait for its lock.",
			Buckets: prometheus.ExponentialBuckets(0.1, 2, 12),
		}),
	}
}

// run looks for chunks to rewrite until ctx ends.
func (m *maintainer) run(ctx context.Context) {
	retry.Every(ctx, maintenanceInterval, func(ctx context.Context) {
		if err := m.rewriteChunks(ctx); err != nil && ctx.Err() == nil {
			m.log.Warn().Err(err).Msg("could not rewrite chunks, retrying")
		}
	})
}

// rewriteChunks rewrites settled chunks, newest first, until none is left or the maintenance window ends.
func (m *maintainer) rewriteChunks(ctx context.Context) error {
	if !m.config.MaintainWindow.Contains(m.now()) {
		return nil
	}
	chunks, err := m.store.ChunksToOrder(ctx, m.now().Add(-time.Duration(m.config.MaintainAfter)))
	if err != nil {
		return err
	}
	for i := range chunks {
		m.waiting.Set(float64(len(chunks) - i))
		if !m.config.MaintainWindow.Contains(m.now()) {
			return nil
		}
		result, err := process.OrderChunk(ctx, m.store, &chunks[i])
		if err != nil {
			return err
		}
		m.report(chunks[i].Name, result)
	}
	m.waiting.Set(0)
	return nil
}

func (m *maintainer) report(chunk string, result process.ChunkOrder) {
	if !result.Ordered {
		m.deferred.Inc()
		m.log.Info().Str("chunk", chunk).Str("reason", result.Reason).Msg("deferred a chunk")
		return
	}
	m.ordered.Inc()
	m.seconds.Observe(result.Took.Seconds())
	m.log.Info().Str("chunk", chunk).Int64("duration_ms", result.Took.Milliseconds()).Msg("rewrote a chunk")
}
