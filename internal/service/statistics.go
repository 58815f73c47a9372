package service

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/internal/store/ops"
)

const (
	// statisticsInterval is how often a process reads the figures of the whole database. A scrape reads them from memory.
	statisticsInterval = 5 * time.Minute
	// statisticsStale is the age at which they disappear, after two failed reads: old figures would look current.
	statisticsStale = 3 * statisticsInterval
	// statisticsTimeout bounds one read.
	statisticsTimeout = 20 * time.Second
	// expiringWithin is the time before their expiry from which keys are counted.
	expiringWithin = 7 * 24 * time.Hour

	expiringName = "roomsensor_keys_expiring"
	expiringHelp = "Keys of all teams by kind, api_key or ingest_key, that expire within 7 days although their team has " +
		"no newer key that is valid for longer."
)

// countExpiringKeys counts the API keys that expire soon, every statisticsInterval until ctx ends. Every API process
// reports the same: do not add them up.
func countExpiringKeys(ctx context.Context, registerer prometheus.Registerer, s *store.Store, log zerolog.Logger) {
	expiring := promauto.With(registerer).NewGauge(prometheus.GaugeOpts{
		Name: expiringName, Help: expiringHelp, ConstLabels: prometheus.Labels{"kind": "api_key"},
	})
	readStatistics(ctx, log, func(ctx context.Context, now time.Time) error {
		keys, err := s.ExpiringAPIKeys(ctx, now.Add(expiringWithin))
		if err == nil {
			expiring.Set(float64(keys))
		}
		return err
	})
}

// readStatistics calls read every statisticsInterval until ctx ends.
func readStatistics(ctx context.Context, log zerolog.Logger, read func(ctx context.Context, now time.Time) error) {
	retry.Every(ctx, statisticsInterval, func(ctx context.Context) {
		bounded, cancel := context.WithTimeout(ctx, statisticsTimeout)
		defer cancel()
		if err := read(bounded, time.Now()); err != nil && ctx.Err() == nil {
			log.Warn().Err(err).Msg("could not read statistics of the database, trying again later")
		}
	})
}

// databaseMetrics report figures of the whole database. Every worker reports the same: do not add them up.
type databaseMetrics struct {
	gauges   map[*prometheus.Desc]func(*ops.Statistics) (value float64, ok bool)
	devices  *prometheus.Desc
	observed *prometheus.Desc

	mu    sync.Mutex
	stats ops.Statistics
	at    time.Time // of the statistics; zero before the first
}

func newDatabaseMetrics(registerer prometheus.Registerer) *databaseMetrics {
	m := &databaseMetrics{
		gauges: map[*prometheus.Desc]func(*ops.Statistics) (float64, bool){},
		devices: prometheus.NewDesc("roomsensor_devices",
			"Devices of all teams by status (decision 16): online, stale or offline.", []string{"status"}, nil),
		observed: prometheus.NewDesc("roomsensor_database_observed_timestamp_seconds",
			"Unix time at which the process last read the figures of the database, every 5 minutes; 0 for never.", nil, nil),
	}
	add := func(name, help string, value func(*ops.Statistics) float64) {
		m.gauges[prometheus.NewDesc("roomsensor_"+name, help, nil, nil)] = func(s *ops.Statistics) (float64, bool) {
			return value(s), true
		}
	}
	add("database_bytes", "Size of the database.", func(s *ops.Statistics) float64 { return float64(s.Bytes) })
	add("database_connections", "Connections to all databases of the server.",
		func(s *ops.Statistics) float64 { return float64(s.Connections) })
	add("database_connections_max", "Connections that the server allows to roles that are not superusers.",
		func(s *ops.Statistics) float64 { return float64(s.MaxConnections) })
	add("database_chunks", "Chunks of all tables.", func(s *ops.Statistics) float64 { return float64(s.AllChunks) })
	add("database_max_locks_per_transaction", "The setting of the server; it should be at least twice the chunks.",
		func(s *ops.Statistics) float64 { return float64(s.MaxLocks) })
	add("readings_chunks", "Chunks of the readings.", func(s *ops.Statistics) float64 { return float64(s.Chunks) })
	add("readings_bytes", "Size of the readings with their indexes.",
		func(s *ops.Statistics) float64 { return float64(s.Layout.Bytes) })
	archived := prometheus.NewDesc("roomsensor_wal_archived_timestamp_seconds",
		"Unix time at which a segment of the write-ahead log was archived last; 0 for never. Missing without an archive.",
		nil, nil)
	m.gauges[archived] = func(s *ops.Statistics) (float64, bool) {
		return float64(s.Archive.At.Unix()), s.Archive.On
	}
	m.addCommunity()
	expiring := prometheus.NewDesc(expiringName, expiringHelp, nil, prometheus.Labels{"kind": "ingest_key"})
	m.gauges[expiring] = func(s *ops.Statistics) (float64, bool) { return float64(s.ExpiringKeys), true }
	registerer.MustRegister(m)
	return m
}

// addCommunity adds the figures that only the Community edition has.
func (m *databaseMetrics) addCommunity() {
	columnstore := func(name, help string, value func(*ops.Columnstore) int64) {
		desc := prometheus.NewDesc("roomsensor_readings_columnstore_"+name, help+" Community edition only.", nil, nil)
		m.gauges[desc] = func(s *ops.Statistics) (float64, bool) {
			if s.Columnstore == nil {
				return 0, false
			}
			return float64(value(s.Columnstore)), true
		}
	}
	columnstore("chunks", "Chunks of the readings that are stored as columns.",
		func(c *ops.Columnstore) int64 { return c.Chunks })
	columnstore("bytes", "Size of these chunks.", func(c *ops.Columnstore) int64 { return c.Bytes })
	columnstore("uncompressed_bytes", "Size of these chunks as rows, before they were compressed.",
		func(c *ops.Columnstore) int64 { return c.BytesBefore })
	hourly := func(name, help string, value func(*ops.Hourly) *time.Time) {
		desc := prometheus.NewDesc("roomsensor_readings_hourly_"+name, help+" Community edition only.", nil, nil)
		m.gauges[desc] = func(s *ops.Statistics) (float64, bool) {
			if s.Hourly == nil || value(s.Hourly) == nil {
				return 0, false
			}
			return float64(value(s.Hourly).UnixMilli()) / 1000, true
		}
	}
	hourly("refreshed_timestamp_seconds", "Unix time of the last successful refresh of readings_hourly.",
		func(h *ops.Hourly) *time.Time { return h.RefreshedAt })
	hourly("materialized_timestamp_seconds", "Unix time until which readings_hourly is materialized; it computes later "+
		"hours from the readings.", func(h *ops.Hourly) *time.Time { return h.MaterializedUntil })
}

// run reads the figures every statisticsInterval until ctx ends.
func (m *databaseMetrics) run(ctx context.Context, s *store.Store, log zerolog.Logger) {
	readStatistics(ctx, log, func(ctx context.Context, now time.Time) error {
		stats, err := s.Statistics(ctx, now, now.Add(expiringWithin))
		if err == nil {
			m.set(&stats, now)
		}
		return err
	})
}

func (m *databaseMetrics) set(s *ops.Statistics, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats, m.at = *s, now
}

// Describe implements prometheus.Collector.
func (m *databaseMetrics) Describe(out chan<- *prometheus.Desc) {
	for d := range m.gauges {
		out <- d
	}
	out <- m.devices
	out <- m.observed
}

// Collect implements prometheus.Collector.
func (m *databaseMetrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	s, at := m.stats, m.at
	m.mu.Unlock()
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	if at.IsZero() {
		send(m.observed, 0)
		return
	}
	send(m.observed, float64(at.UnixMilli())/1000)
	if time.Since(at) >= statisticsStale {
		return
	}
	for d, read := range m.gauges {
		if value, ok := read(&s); ok {
			send(d, value)
		}
	}
	for _, status := range []roomsensor.Status{roomsensor.Online, roomsensor.Stale, roomsensor.Offline} {
		send(m.devices, float64(s.Devices[status]), string(status))
	}
}
