package process

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"roomsensor/internal/config"
	"roomsensor/internal/store"
	"roomsensor/internal/store/pg"
)

// ReadFromStandbys lets the reads of a store run on the standbys that are configured, once WatchStandbys runs. Its only
// error is a *config.ValueError: a URL that the driver does not accept.
func ReadFromStandbys(ctx context.Context, cfg config.Standbys, s *store.Store) error {
	if cfg.ReadDatabaseURL == "" {
		return nil
	}
	if err := s.ReadFrom(ctx, string(cfg.ReadDatabaseURL)); err != nil {
		return cfg.Malformed()
	}
	return nil
}

// WatchStandbys uses the standbys of a store while they follow the primary. It logs when that changes, and registers
// their metrics. A process whose standbys are left out stays ready, because the primary serves its reads.
func (p *Process) WatchStandbys(s *store.Store) {
	p.Metrics.MustRegister(newStandbyMetrics(s.StandbyStatistics))
	if len(s.StandbyStatistics().Standbys) == 0 {
		return
	}
	p.Background("checking the standbys", func(ctx context.Context) error {
		s.WatchStandbys(ctx, func(name string, err error) {
			if err == nil {
				p.Log.Info().Str("standby", name).Msg("reading from a standby")
				return
			}
			p.Log.Warn().Str("standby", name).Err(err).Msg("not reading from a standby, the primary serves its reads")
		})
		return nil
	})
}

// standbyMetrics report what standbys serve.
type standbyMetrics struct {
	statistics                                  func() pg.StandbyStatistics
	used, lag, reads, fallbacks, waits, waiting *prometheus.Desc
}

func newStandbyMetrics(statistics func() pg.StandbyStatistics) *standbyMetrics {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("roomsensor_database_"+name, help, labels, nil)
	}
	return &standbyMetrics{
		statistics: statistics,
		used: describe("standby_used", "1 while reads use a standby of READ_DATABASE_URL, by standby (host and port).",
			"standby"),
		lag: describe("standby_lag_seconds", "How long ago the primary was where a standby is now; 0 while reads use it. "+
			"It grows while the standby does not answer.", "standby"),
		reads: describe("standby_reads_total", "Reads that a standby served."),
		fallbacks: describe("standby_fallbacks_total", "Reads that the primary served although standbys are configured, by "+
			"reason: left_out (no standby is used), busy (no free connection), lag (not replayed in time), not_a_standby, "+
			"conflict (canceled by the standby), timeout or error.", "reason"),
		waits:   describe("standby_waits_total", "Reads and checks that waited for a standby to replay the log."),
		waiting: describe("standby_wait_seconds_total", "Time that these waited, in total."),
	}
}

// Describe implements prometheus.Collector.
func (m *standbyMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.used, m.lag, m.reads, m.fallbacks, m.waits, m.waiting} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *standbyMetrics) Collect(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	stats := m.statistics()
	for _, standby := range stats.Standbys {
		send(m.used, prometheus.GaugeValue, boolean(standby.Used), standby.Name)
		send(m.lag, prometheus.GaugeValue, standby.Lag.Seconds(), standby.Name)
	}
	send(m.reads, prometheus.CounterValue, float64(stats.Reads))
	for reason, n := range stats.Fallbacks {
		send(m.fallbacks, prometheus.CounterValue, float64(n), reason.String())
	}
	send(m.waits, prometheus.CounterValue, float64(stats.Waits))
	send(m.waiting, prometheus.CounterValue, stats.WaitTime.Seconds())
}
