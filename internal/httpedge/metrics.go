package httpedge

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// requestBuckets are the bounds of the durations of requests in seconds: from a cached response to an export, or an
// upload over a cellular connection, of two minutes.
var requestBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 120}

// RequestMetrics are the rate, the errors and the durations of the requests of a listener. All listeners have the same
// metrics under their own prefix. A request is labeled with the template of its route, never with a URL, a team or a
// key, so that clients cannot create time series.
type RequestMetrics struct {
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	inFlight  prometheus.Gauge
}

// NewRequestMetrics registers the metrics of a listener. prefix is what their names begin with, such as roomsensor_api.
func NewRequestMetrics(registerer prometheus.Registerer, prefix string) *RequestMetrics {
	factory := promauto.With(registerer)
	return &RequestMetrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "_requests_total",
			Help: "Requests by template of the route, method, status and error code, which is empty on success. The status " +
				"of a client that left is 499; that of a 501, which the client caused, is 4xx; that of a response that broke off " +
				"is 5xx.",
		}, []string{"route", "method", "status", "code"}),
		durations: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    prefix + "_request_duration_seconds",
			Help:    "Duration of requests from their arrival to the end of the response, the transfer of bodies included.",
			Buckets: requestBuckets,
		}, []string{"route", "method"}),
		inFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: prefix + "_requests_in_flight",
			Help: "Requests in flight, long polls included.",
		}),
	}
}

// Begin counts a request as one in flight. Its End must follow.
func (m *RequestMetrics) Begin() { m.inFlight.Inc() }

// End counts a request that has ended.
func (m *RequestMetrics) End(e *AccessEntry) {
	m.inFlight.Dec()
	method := BoundedMethod(e.Method)
	m.requests.WithLabelValues(e.Route, method, e.StatusLabel(), string(e.Code)).Inc()
	m.durations.WithLabelValues(e.Route, method).Observe(e.Duration.Seconds())
}
