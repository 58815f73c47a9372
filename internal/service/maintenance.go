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

// maintenanceInterval is how often a worker looks for expired readings and for chunks to rewrite.
const maintenanceInterval = 5 * time.Minute

// maintainer deletes readings that are older than their retention, and rewrites settled chunks in primary-key order
// during the maintenance window.
type maintainer struct {
	store    *store.Store
	config   *config.Maintenance
	log      zerolog.Logger
	now      func() time.Time
	waiting  prometheus.Gauge
	ordered  prometheus.Counter
	deferred *prometheus.CounterVec // by process.Deferral
	seconds  prometheus.Histogram
	failures prometheus.Counter

	expired, expiredSamples, expireFailures prometheus.Counter
}

func newMaintainer(
	s *store.Store, cfg *config.Maintenance, log zerolog.Logger, registry prometheus.Registerer,
) *maintainer {
	factory := promauto.With(registry)
	m := &maintainer{
		store: s, config: cfg, log: log, now: time.Now,
		waiting: factory.NewGauge(prometheus.GaugeOpts{
			Name: "roomsensor_maintenance_chunks_waiting",
			Help: "Settled chunks that are not in primary-key order, at the last check.",
		}),
		ordered: factory.NewCounter(prometheus.CounterOpts{
			Name: "roomsensor_maintenance_chunks_ordered_total", Help: "Chunks rewritten in primary-key order.",
		}),
		deferred: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "roomsensor_maintenance_chunks_deferred_total",
			Help: "Settled chunks that a check left as they were, by reason: in_use (its lock was not acquired in a second), " +
				"rewrite_running (another process rewrites a chunk), too_large (the rewrite would exceed MAINTAIN_TIMEOUT), " +
				"timeout (it did), postponed (it did within the last day).",
		}, []string{"reason"}),
		seconds: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "roomsensor_maintenance_chunk_duration_seconds",
			Help:    "Time to lock and rewrite a chunk, including the wait for its lock.",
			Buckets: prometheus.ExponentialBuckets(0.1, 2, 12),
		}),
		expired: factory.NewCounter(prometheus.CounterOpts{
			Name: "roomsensor_retention_readings_deleted_total",
			Help: "Readings that were deleted because they were older than the retention of their device or team.",
		}),
		expiredSamples: factory.NewCounter(prometheus.CounterOpts{
			Name: "roomsensor_retention_samples_deleted_total", Help: "Samples of such readings.",
		}),
		expireFailures: factory.NewCounter(prometheus.CounterOpts{
			Name: "roomsensor_retention_failures_total",
			Help: "Passes that could not delete all readings older than the retention; the log has the error. The next one " +
				"is an hour later.",
		}),
		failures: factory.NewCounter(prometheus.CounterOpts{
			Name: "roomsensor_maintenance_failures_total",
			Help: "Checks for chunks to rewrite, or for expired readings, that ended with an error; the log has it. " +
				"The next one is 5 minutes later.",
		}),
	}
	for _, reason := range process.Deferrals {
		m.deferred.WithLabelValues(string(reason))
	}
	return m
}

// run looks for expired readings and for chunks to rewrite until ctx ends.
func (m *maintainer) run(ctx context.Context) {
	retry.Every(ctx, maintenanceInterval, func(ctx context.Context) {
		m.expireReadings(ctx)
		if err := m.rewriteChunks(ctx); err != nil && ctx.Err() == nil {
			m.failures.Inc()
			m.log.Warn().Err(err).Msg("could not rewrite chunks, retrying")
		}
	})
}

// expireReadings deletes readings that are older than their retention, at most once an hour in all workers.
func (m *maintainer) expireReadings(ctx context.Context) {
	expired, begun, err := m.store.ExpireReadings(ctx)
	for team, deleted := range expired {
		m.expired.Add(float64(deleted.Readings))
		m.expiredSamples.Add(float64(deleted.Samples))
		m.log.Info().Stringer("team_id", team).Int64("readings", deleted.Readings).Int64("samples", deleted.Samples).
			Msg("deleted expired readings")
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	failures := m.failures
	if begun {
		failures = m.expireFailures
	}
	failures.Inc()
	m.log.Warn().Err(err).Msg("could not delete all expired readings, trying again later")
}

// rewriteChunks tries to rewrite each settled chunk, newest first, until the maintenance window ends.
func (m *maintainer) rewriteChunks(ctx context.Context) error {
	if !m.config.MaintainWindow.Contains(m.now()) {
		return nil
	}
	limit := time.Duration(m.config.MaintainTimeout)
	chunks, err := m.store.ChunksToOrder(ctx, m.now().Add(-time.Duration(m.config.MaintainAfter)), limit)
	if err != nil {
		return err
	}
	m.waiting.Set(float64(len(chunks)))
	for i := range chunks {
		if !m.config.MaintainWindow.Contains(m.now()) {
			return nil
		}
		result, err := process.OrderChunk(ctx, m.store, &chunks[i], limit)
		if err != nil {
			return err
		}
		m.report(chunks[i].Name, result)
	}
	return nil
}

// report logs at warn what an operator has to change, once a day per chunk.
func (m *maintainer) report(chunk string, result process.ChunkOrder) {
	if reason := result.Deferral; reason != "" {
		m.deferred.WithLabelValues(string(reason)).Inc()
		level := zerolog.InfoLevel
		switch reason {
		case process.RewriteTimeout:
			level = zerolog.WarnLevel
		case process.ChunkTooLarge, process.ChunkPostponed:
			level = zerolog.DebugLevel
		case process.ChunkInUse, process.RewriteRunning:
		}
		m.log.WithLevel(level).Str("chunk", chunk).Str("reason", string(reason)).Msg("deferred a chunk")
		return
	}
	m.waiting.Dec()
	m.ordered.Inc()
	m.seconds.Observe(result.Took.Seconds())
	m.log.Info().Str("chunk", chunk).Int64("duration_ms", result.Took.Milliseconds()).Msg("rewrote a chunk")
}
