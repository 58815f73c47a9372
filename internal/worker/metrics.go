package worker

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

// The values of the label cause of roomsensor_ingest_rejects_dropped_total.
const (
	causeAge      = "age"
	causeSize     = "size"
	causeTeamSize = "team_size"
)

// lagBuckets are the bounds of the time from the arrival to the commit in seconds: from that of an idle worker to that
// of a backlog of a day. The objective for freshness uses that of 10 seconds.
var lagBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 30, 120, 600, 3600, 6 * 3600, 86400}

// metrics are the metrics of one worker. The metrics of the queue and the gauges describe the whole queue and all
// rejects, and every worker reports the same: do not add them up.
type metrics struct {
	uploads, readings, changed  prometheus.Counter
	purged, purgedEarly         prometheus.Counter
	sourceIgnored               prometheus.Counter
	failures, parked            prometheus.Counter
	rejects, dropped            *prometheus.CounterVec
	ignored                     *upload.IgnoredCounter
	batchUploads, batchReadings prometheus.Histogram
	batchSeconds                prometheus.Histogram
	lag, priorityLag            prometheus.Histogram

	queue                                      *queueMetrics
	rejectsKept, rejectsBytes, rejectsMaxBytes prometheus.Gauge
}

// newMetrics registers the metrics of a worker. keep is the retention of stored uploads in the stream.
func newMetrics(registerer prometheus.Registerer, o *outcomes, keep time.Duration) *metrics {
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
	m := &metrics{
		uploads:  counter("uploads_total", "Uploads that were stored and acknowledged."),
		readings: counter("readings_total", "Readings of stored uploads that belong to a device, duplicates included."),
		changed:  counter("rows_changed_total", "Readings that were inserted or changed."),
		purged:   counter("purged_messages_total", "Stored uploads that were deleted from the stream."),
		purgedEarly: counter("purged_early_messages_total",
			"Stored uploads that were deleted from the stream before STREAM_KEEP, because it was nearly full."),
		sourceIgnored: counter("source_ignored_total",
			"Parts of messages of sources that their mapping ignores, redeliveries included."),
		failures: counter("batch_failures_total", "Batches of which at least one upload was returned to the queue."),
		parked: counter("parked_total",
			"Uploads that became rejects after PARK_AFTER deliveries, while the database stored other uploads."),
		rejects: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "roomsensor_ingest_rejects_total", Help: "Rejects that were stored, by reason, redeliveries included.",
		}, []string{"reason"}),
		dropped: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "roomsensor_ingest_rejects_dropped_total",
			Help: "Rejects that were deleted, by cause: age of the reject, size of all rejects, or team_size.",
		}, []string{"cause"}),
		ignored: upload.NewIgnoredCounter(registerer, "roomsensor_ingest_ignored_fields_total",
			"Unknown members of stored uploads that were published to the stream directly, by name, redeliveries included; the "+
				"first names of a process, and other for the rest."),
		batchUploads:  histogram("batch_uploads", "Uploads per batch.", prometheus.ExponentialBuckets(1, 4, 8)),
		batchReadings: histogram("batch_readings", "Readings per batch.", prometheus.ExponentialBuckets(1, 4, 8)),
		batchSeconds: histogram("batch_duration_seconds", "Time to write a batch, until its commit.",
			prometheus.ExponentialBuckets(0.001, 2, 16)),
		lag: histogram("lag_seconds", "Time from the arrival of an upload in the queue to its commit.", lagBuckets),
		priorityLag: histogram("priority_lag_seconds",
			"Time from the arrival to the commit of fresh uploads that the priority lane stored during a backlog.",
			lagBuckets),

		queue: newQueueMetrics(registerer, keep),

		rejectsKept:     gauge("rejects_kept", "Rejects in the database."),
		rejectsBytes:    gauge("rejects_bytes", "Size of all rejects in bytes, as their limits count it."),
		rejectsMaxBytes: gauge("rejects_max_bytes", "Size in bytes above which the largest teams lose their oldest rejects."),
	}
	addOutcomeMetrics(factory, o)
	// Create every time series, so that a rate includes the first event.
	for _, cause := range []string{causeAge, causeSize, causeTeamSize} {
		m.dropped.WithLabelValues(cause)
	}
	for _, reason := range roomsensor.Reasons {
		m.rejects.WithLabelValues(string(reason))
	}
	return m
}

func addOutcomeMetrics(factory promauto.Factory, o *outcomes) {
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "roomsensor_ingest_max_deliveries",
		Help: "Highest number of deliveries of an upload that this worker returned to the queue in the last minute.",
	}, func() float64 { return float64(o.sum().deliveries) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "roomsensor_ingest_holding",
		Help: "1 while the worker keeps refused uploads in the queue, because the database refuses most uploads.",
	}, func() float64 {
		if o.holds() {
			return 1
		}
		return 0
	})
}

func (m *metrics) countTrimmed(t *roomsensor.RejectTrim) {
	m.dropped.WithLabelValues(causeAge).Add(float64(t.Aged))
	m.dropped.WithLabelValues(causeSize).Add(float64(t.Evicted))
	m.dropped.WithLabelValues(causeTeamSize).Add(float64(t.TeamEvicted))
}

func (m *metrics) setKept(t *roomsensor.RejectTrim, maxBytes int64) {
	m.rejectsKept.Set(float64(t.Kept))
	m.rejectsBytes.Set(float64(t.Bytes))
	m.rejectsMaxBytes.Set(float64(maxBytes))
}

// report counts the results of a batch and logs one line.
func (w *Worker) report(b *batch, results []result, err error, started time.Time, traced *batchSpans) {
	now := time.Now()
	rejects := 0
	for i := range results {
		r := &results[i]
		if !r.stored {
			continue
		}
		rejects += len(r.rejects)
		w.metrics.countStored(r, now)
		if r.parked {
			w.metrics.parked.Inc()
			w.Log.Error().Uint64("stream_sequence", r.delivery.arrival.Sequence).Str("unit", r.delivery.sender()).
				Int("deliveries", r.delivery.deliveries).Msg("moved an upload to the rejects: the database keeps refusing it")
		}
	}
	w.metrics.batchUploads.Observe(float64(len(b.deliveries)))
	w.metrics.batchReadings.Observe(float64(b.readings))
	level, message := zerolog.InfoLevel, "stored a batch"
	switch {
	case err != nil && w.Holds():
		w.metrics.failures.Inc()
		level, message = zerolog.ErrorLevel, "holding refused uploads in the queue: the database refuses most uploads"
	case err != nil:
		w.metrics.failures.Inc()
		level, message = zerolog.WarnLevel, "could not store all of a batch, returned the rest to the queue"
	default:
		w.metrics.batchSeconds.Observe(now.Sub(started).Seconds())
	}
	line := w.Log.WithLevel(level).Err(err).Int("uploads", len(b.deliveries)).Int("readings", b.readings).
		Int("bytes", b.bytes).Int("rejects", rejects).Dur("duration_ms", now.Sub(started))
	if traced != nil {
		line.Str("trace_id", traced.traceID())
	}
	line.Msg(message)
}

func (m *metrics) countStored(r *result, now time.Time) {
	m.uploads.Inc()
	m.readings.Add(float64(r.resolved()))
	if r.delivery.upload != nil && r.delivery.arrival.Team == nil { // A receiver has counted the others.
		m.ignored.Add(&r.delivery.upload.Ignored)
	}
	if r.message != nil {
		m.sourceIgnored.Add(float64(r.message.Ignored))
	}
	m.lag.Observe(max(0, now.Sub(r.delivery.arrival.At).Seconds()))
	for i := range r.rejects {
		m.rejects.WithLabelValues(string(r.rejects[i].Reason)).Inc()
	}
}

// staleAfter is when the metrics of the queue disappear, after three failed reads. A value from before an outage would
// look current: an autoscaler would act on it, and the maximum over all workers would be that of a disconnected one.
const staleAfter = 3 * watchEvery

// queueMetrics reports the last state of the queue that a worker read. The time of that read, as Unix time or 0 for
// never, does not disappear, so that an alert can tell a disconnected worker from a stopped one.
type queueMetrics struct {
	waiting, unacknowledged, oldest, bytes, maxBytes *prometheus.Desc
	reach, kept, observed                            *prometheus.Desc
	keep                                             time.Duration

	mu    sync.Mutex
	state queue.State
	at    time.Time // of the state; zero before the first
}

func newQueueMetrics(registerer prometheus.Registerer, keep time.Duration) *queueMetrics {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("roomsensor_queue_"+name, help, nil, nil)
	}
	m := &queueMetrics{
		waiting:        describe("waiting_messages", "Uploads that no worker has received: the backlog."),
		unacknowledged: describe("unacknowledged_messages", "Uploads that a worker has received and not settled."),
		oldest: describe("oldest_unacknowledged_seconds",
			"Age of the oldest upload that is not settled; 0 when there is none."),
		bytes:    describe("stream_bytes", "Size of the stream in bytes."),
		maxBytes: describe("stream_max_bytes", "Size in bytes at which the stream refuses uploads; 0 when unbounded."),
		reach: describe("stream_reach_seconds",
			"How far back a replay of the stream reaches: the age of the oldest upload that it keeps; 0 when it is empty."),
		kept: describe("stream_keep_seconds", "How long the stream keeps stored uploads, STREAM_KEEP."),
		keep: keep,
		observed: describe("observed_timestamp_seconds",
			"Unix time at which the other metrics of the queue were read; they disappear 15 s later."),
	}
	registerer.MustRegister(m)
	return m
}

// set replaces the state.
func (m *queueMetrics) set(s *queue.State, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state, m.at = *s, now
}

// Describe implements prometheus.Collector.
func (m *queueMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		m.waiting, m.unacknowledged, m.oldest, m.bytes, m.maxBytes, m.reach, m.kept, m.observed,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *queueMetrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	s, at := m.state, m.at
	m.mu.Unlock()
	send := func(d *prometheus.Desc, value float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	send(m.kept, m.keep.Seconds())
	if at.IsZero() {
		send(m.observed, 0)
		return
	}
	send(m.observed, float64(at.UnixMilli())/1000)
	if time.Since(at) >= staleAfter {
		return
	}
	send(m.waiting, float64(s.Waiting))
	send(m.unacknowledged, float64(s.Unacknowledged))
	send(m.oldest, secondsSince(s.Oldest, at))
	send(m.reach, secondsSince(s.Kept, at))
	send(m.bytes, float64(s.Bytes))
	send(m.maxBytes, float64(max(0, s.MaxBytes)))
}

// secondsSince returns the seconds from an instant to now, or 0 for the zero time.
func secondsSince(instant, now time.Time) float64 {
	if instant.IsZero() {
		return 0
	}
	return max(0, now.Sub(instant).Seconds())
}
