package api

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/httpedge"
)

// The values of the label result of roomsensor_api_rate_limit_total.
const (
	rateAdmitted   = "admitted"
	rateDenied     = "denied"
	rateRemembered = "denied_from_memory"
	rateFailed     = "failed"
)

// metrics are the Prometheus metrics of the API.
type metrics struct {
	*httpedge.RequestMetrics
	factory     promauto.Factory
	rate        *prometheus.CounterVec
	snapshotAge prometheus.Histogram
	visibleLag  prometheus.Histogram
}

// newMetrics registers the metrics of the API. registerer may be nil.
func newMetrics(registerer prometheus.Registerer, others []prometheus.Collector) (*metrics, error) {
	if registerer != nil {
		for _, c := range others {
			if err := registerer.Register(c); err != nil {
				return nil, fmt.Errorf("registering metrics: %w", err)
			}
		}
	}
	factory := promauto.With(registerer)
	m := &metrics{
		RequestMetrics: httpedge.NewRequestMetrics(registerer, "roomsensor_api"),
		factory:        factory,
		rate: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "roomsensor_api_rate_limit_total",
			Help: "Decisions of the rate limit by result: admitted, denied, denied_from_memory (without a query), or failed " +
				"(the database did not answer).",
		}, []string{"result"}),
		snapshotAge: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "roomsensor_api_snapshot_age_seconds",
			Help:    "Age of the data that GET /v1/devices/current used, when its response began.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		visibleLag: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "roomsensor_api_visible_lag_seconds",
			Help: "Time from the arrival of the last upload of a device in the queue until a snapshot of GET " +
				"/v1/devices/current shows it, for teams that request one at least every 2 seconds.",
			Buckets: prometheus.ExponentialBuckets(0.005, 3, 16),
		}),
	}
	// Create every time series, so that a rate includes the first event.
	for _, result := range []string{rateAdmitted, rateDenied, rateRemembered, rateFailed} {
		m.rate.WithLabelValues(result)
	}
	return m, nil
}

// addLimiters registers the limits of lists and scans, and how many requests wait for them.
func (m *metrics) addLimiters(lists, scans *fairshare.Limiter) {
	gauge := func(name, help string, labels prometheus.Labels, value func() int) {
		m.factory.NewGaugeFunc(prometheus.GaugeOpts{Name: "roomsensor_api_" + name, Help: help, ConstLabels: labels},
			func() float64 { return float64(value()) })
	}
	gauge("list_bytes", "Bytes of the lists that are being read or sent.", nil, lists.Used)
	gauge("scans_running", "Pages that are being read of coverage, gaps, aggregates, nights, changes, and of devices by "+
		"tag or in large teams.", nil, scans.Used)
	gauge("list_max_bytes", "Bytes of lists at which requests wait for others to end.", nil,
		func() int { return maxBodies })
	gauge("scans_max", "Pages in roomsensor_api_scans_running at which requests wait for others to end.", nil,
		func() int { return maxScans })
	gauge("exports_max", "Exports that may run at the same time.", nil, func() int { return maxExports })
	const help = "Requests that wait for a limit of the process, by limit: list_bytes or scans."
	gauge("limit_waiting", help, prometheus.Labels{"limit": "list_bytes"}, lists.Waiting)
	gauge("limit_waiting", help, prometheus.Labels{"limit": "scans"}, scans.Waiting)
}
