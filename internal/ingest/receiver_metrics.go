package ingest

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// receiverMetrics is what a receiver measures.
type receiverMetrics struct {
	requests       *prometheus.CounterVec
	uploads, bytes prometheus.Counter
	seconds        prometheus.Histogram
}

func newReceiverMetrics(registerer prometheus.Registerer) *receiverMetrics {
	factory := promauto.With(registerer)
	return &receiverMetrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "roomsensor_receiver_requests_total", Help: "Requests by status and error code; code is empty for 202.",
		}, []string{"status", "code"}),
		uploads: factory.NewCounter(prometheus.CounterOpts{
			Name: "roomsensor_receiver_uploads_total", Help: "Uploads that the queue stored and that were confirmed.",
		}),
		bytes: factory.NewCounter(prometheus.CounterOpts{
			Name: "roomsensor_receiver_bytes_total", Help: "Bytes of confirmed uploads, without their compression.",
		}),
		seconds: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "roomsensor_receiver_request_seconds", Help: "Time of requests, the sending of the body included.",
			Buckets: prometheus.ExponentialBuckets(0.001, 3, 14),
		}),
	}
}

func (m *receiverMetrics) note(x *exchange, took time.Duration) {
	m.requests.WithLabelValues(strconv.Itoa(x.status), string(x.code)).Inc()
	m.seconds.Observe(took.Seconds())
	if x.code == "" {
		m.uploads.Add(float64(x.uploads))
		m.bytes.Add(float64(x.bytes))
	}
}
