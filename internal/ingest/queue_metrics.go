package ingest

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"roomsensor/internal/queue"
)

// staleAfter is when the metrics of the queue go, after three looks at it that
// failed. A figure from before an outage would look like a fresh one: an
// autoscaler would act on it, and the maximum over all workers would be that of
// the one that is cut off.
const staleAfter = 3 * watchEvery

// queueMetrics tell what a worker last saw of the queue. When that was stays,
// as an instant in Unix time, 0 for never, so that an alert can tell a worker
// that cannot see from one that is gone.
type queueMetrics struct {
	waiting, unacknowledged, oldest, bytes, maxBytes *prometheus.Desc
	observed                                         *prometheus.Desc

	mu    sync.Mutex
	state queue.State
	at    time.Time // of the state; zero before the first
}

func newQueueMetrics(registerer prometheus.Registerer) *queueMetrics {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("roomsensor_queue_"+name, help, nil, nil)
	}
	m := &queueMetrics{
		waiting:        describe("waiting_messages", "Uploads that no worker has been given: the backlog."),
		unacknowledged: describe("unacknowledged_messages", "Uploads that a worker was given and has not settled."),
		oldest: describe("oldest_unacknowledged_seconds",
			"Age of the oldest upload that is not settled; 0 when there is none."),
		bytes:    describe("stream_bytes", "Size of the stream."),
		maxBytes: describe("stream_max_bytes", "Size at which the stream refuses uploads; 0 when it has none."),
		observed: describe("observed_timestamp_seconds",
			"When the other metrics of the queue were read, in Unix time; they go when that is 15 s ago."),
	}
	registerer.MustRegister(m)
	return m
}

// note keeps what a look at the queue told.
func (m *queueMetrics) note(s *queue.State, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state, m.at = *s, now
}

// Describe implements prometheus.Collector.
func (m *queueMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.waiting, m.unacknowledged, m.oldest, m.bytes, m.maxBytes, m.observed} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *queueMetrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	s, at := m.state, m.at
	m.mu.Unlock()
	tell := func(d *prometheus.Desc, value float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	if at.IsZero() {
		tell(m.observed, 0)
		return
	}
	tell(m.observed, float64(at.UnixMilli())/1000)
	if time.Since(at) >= staleAfter {
		return
	}
	tell(m.waiting, float64(s.Waiting))
	tell(m.unacknowledged, float64(s.Unacknowledged))
	tell(m.oldest, ageOf(s.Oldest, at))
	tell(m.bytes, float64(s.Bytes))
	tell(m.maxBytes, float64(max(0, s.MaxBytes)))
}

// ageOf is in seconds, and 0 of nothing.
func ageOf(stored, now time.Time) float64 {
	if stored.IsZero() {
		return 0
	}
	return max(0, now.Sub(stored).Seconds())
}
