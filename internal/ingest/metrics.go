package ingest

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"roomsensor/internal/roomsensor"
)

// workerMetrics is what a worker measures. Those of the queue and the gauges are
// of the whole queue and of all rejects, the same from every worker: do not add
// them up.
type workerMetrics struct {
	uploads, readings, changed, purged prometheus.Counter
	failures                           prometheus.Counter
	rejects, dropped                   *prometheus.CounterVec
	batchReadings, batchSeconds        prometheus.Histogram
	lag, aheadLag                      prometheus.Histogram

	queue                                      *queueMetrics
	rejectsKept, rejectsBytes, rejectsMaxBytes prometheus.Gauge
}

func newWorkerMetrics(registerer prometheus.Registerer) *workerMetrics {
	factory := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return factory.NewCounter(prometheus.CounterOpts{Name: "roomsensor_ingest_" + name, Help: help})
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return factory.NewHistogram(prometheus.HistogramOpts{Name: "roomsensor_ingest_" + name, Help: help, Buckets: buckets})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return factory.NewGauge(prometheus.GaugeOpts{Name: "roomsensor_" + name, Help: help})
	}
	m := &workerMetrics{
		uploads:  counter("uploads_total", "Uploads that were settled after a commit."),
		readings: counter("readings_total", "Readings in them that belong to a device, before duplicates unite."),
		changed:  counter("rows_changed_total", "Rows of readings that were inserted or changed."),
		purged:   counter("purged_messages_total", "Stored uploads that left the stream."),
		failures: counter("batch_failures_total", "Batches that were given back to be tried again."),
		rejects: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "roomsensor_ingest_rejects_total", Help: "Rejects that were kept, redeliveries included.",
		}, []string{"reason"}),
		dropped: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "roomsensor_ingest_rejects_dropped_total",
			Help: "Rejects that were deleted, by cause: their age, or the size of all.",
		}, []string{"cause"}),
		batchReadings: histogram("batch_readings", "Readings in a batch.", prometheus.ExponentialBuckets(1, 4, 8)),
		batchSeconds: histogram("batch_seconds", "Time from a batch to its commit.",
			prometheus.ExponentialBuckets(0.001, 2, 16)),
		lag: histogram("lag_seconds", "Time from the arrival of an upload in the queue to its commit.",
			prometheus.ExponentialBuckets(0.005, 3, 16)),
		aheadLag: histogram("ahead_lag_seconds", "The same of fresh uploads that were stored ahead of a backlog.",
			prometheus.ExponentialBuckets(0.005, 3, 12)),

		queue: newQueueMetrics(registerer),

		rejectsKept:     gauge("rejects_kept", "Rejects that are kept."),
		rejectsBytes:    gauge("rejects_bytes", "Room on disk that they take; what is dropped leaves it for the next."),
		rejectsMaxBytes: gauge("rejects_max_bytes", "Size beyond which the oldest rejects are dropped."),
	}
	for _, cause := range []string{causeAge, causeSize} {
		m.dropped.WithLabelValues(cause) // As below.
	}
	for _, reason := range roomsensor.Reasons {
		m.rejects.WithLabelValues(string(reason)) // So that a rate over it sees the first.
	}
	return m
}

// The causes for which rejects are dropped.
const (
	causeAge  = "age"
	causeSize = "size"
)

func (m *workerMetrics) trim(t *roomsensor.RejectTrim) {
	m.dropped.WithLabelValues(causeAge).Add(float64(t.Aged))
	m.dropped.WithLabelValues(causeSize).Add(float64(t.Crowded))
}

func (m *workerMetrics) keep(t *roomsensor.RejectTrim, maxBytes int64) {
	m.rejectsKept.Set(float64(t.Kept))
	m.rejectsBytes.Set(float64(t.Bytes))
	m.rejectsMaxBytes.Set(float64(maxBytes))
}

// note measures and logs what became of a batch, in one line.
func (w *Worker) note(b *batch, outcomes []*outcome, err error, started time.Time) {
	now := time.Now()
	rejects := 0
	for _, o := range outcomes {
		if !o.stored {
			continue
		}
		rejects += len(o.rejects)
		w.metrics.noteStored(o, now)
	}
	w.metrics.batchReadings.Observe(float64(b.readings))
	level := zerolog.InfoLevel
	if err != nil {
		w.metrics.failures.Inc()
		level = zerolog.WarnLevel
	} else {
		w.metrics.batchSeconds.Observe(now.Sub(started).Seconds())
	}
	w.Log.WithLevel(level).Err(err).Int("uploads", len(b.deliveries)).Int("readings", b.readings).Int("bytes", b.bytes).
		Int("rejects", rejects).Dur("took", now.Sub(started)).Msg("batch")
}

func (m *workerMetrics) noteStored(o *outcome, now time.Time) {
	m.uploads.Inc()
	m.readings.Add(float64(len(o.rows)))
	m.lag.Observe(max(0, now.Sub(o.arrival.At).Seconds()))
	for i := range o.rejects {
		m.rejects.WithLabelValues(string(o.rejects[i].Reason)).Inc()
	}
}
