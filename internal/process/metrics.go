package process

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"roomsensor/internal/store"
	"roomsensor/internal/store/pg"
)

// Registry takes the metrics of a process, and serves them.
type Registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// addProcessMetrics registers what every process has: the metrics of the Go runtime, the build and the readiness.
func (p *Process) addProcessMetrics() {
	p.Metrics.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	factory := promauto.With(p.Metrics)
	factory.NewGauge(prometheus.GaugeOpts{
		Name:        "roomsensor_build_info",
		Help:        "1, with the version of the program and of Go that built it.",
		ConstLabels: prometheus.Labels{"version": p.Version, "goversion": runtime.Version()},
	}).Set(1)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "roomsensor_process_ready",
		Help: "1 while /readyz of the process is 200.",
	}, func() float64 { return boolean(len(p.Health.Missing()) == 0) })
	p.Metrics.MustRegister(&dependencyMetrics{p.Health, prometheus.NewDesc("roomsensor_process_dependency_available",
		"1 while the process can use a dependency, by dependency: database, queue, ingest keys, worker, sources or broker.",
		[]string{"dependency"}, nil)})
}

func boolean(value bool) float64 {
	if value {
		return 1
	}
	return 0
}

// dependencyMetrics report which dependencies of a process are available.
type dependencyMetrics struct {
	health    *Health
	available *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (d *dependencyMetrics) Describe(out chan<- *prometheus.Desc) { out <- d.available }

// Collect implements prometheus.Collector.
func (d *dependencyMetrics) Collect(out chan<- prometheus.Metric) {
	for name, available := range d.health.available() {
		out <- prometheus.MustNewConstMetric(d.available, prometheus.GaugeValue, boolean(available), name)
	}
}

// ObservePools registers the metrics of the pools of a store.
func (p *Process) ObservePools(s *store.Store) {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("roomsensor_database_pool_"+name, help, append([]string{"pool"}, labels...), nil)
	}
	p.Metrics.MustRegister(&poolMetrics{
		pools: s.Pools,
		connections: describe("connections", "Connections of a pool by state: in_use or idle. The pool is main (pages, "+
			"writes), admission (keys, rate limit, probes, these metrics), export, or standby or standby export with its host "+
			"and port.", "state"),
		most:  describe("connections_max", "Connections that a pool may have."),
		waits: describe("waits_total", "Requests for a connection of a pool that had to wait for one."),
		time:  describe("wait_seconds_total", "Time that these requests waited, in total."),
	})
}

// poolMetrics report the pools of database connections.
type poolMetrics struct {
	pools                          func() []pg.Pool
	connections, most, waits, time *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (m *poolMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.connections, m.most, m.waits, m.time} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *poolMetrics) Collect(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	for _, pool := range m.pools() {
		send(m.connections, prometheus.GaugeValue, float64(pool.InUse), pool.Name, "in_use")
		send(m.connections, prometheus.GaugeValue, float64(pool.Idle), pool.Name, "idle")
		send(m.most, prometheus.GaugeValue, float64(pool.Max), pool.Name)
		send(m.waits, prometheus.CounterValue, float64(pool.Waits), pool.Name)
		send(m.time, prometheus.CounterValue, pool.WaitTime.Seconds(), pool.Name)
	}
}
