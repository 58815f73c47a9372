package fleet

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"roomsensor/internal/queue"
	"roomsensor/internal/retry"
	"roomsensor/test/proctest"
)

// Sample is the state of the trial at an instant, and what happened since the sample before.
type Sample struct {
	Seconds   float64            `json:"seconds"`  // since the start
	Accepted  float64            `json:"accepted"` // uploads per second with a 202
	Committed float64            `json:"committed"`
	Lag       int64              `json:"max_lag"` // most uploads that were accepted and not committed
	Failed    int                `json:"failed"`  // requests since the start
	Latencies map[kind]Latency   `json:"latencies"`
	Processes map[string]Process `json:"processes"`
	Disk      Disk               `json:"disk"`
}

// Process is what a process uses.
type Process struct {
	MiB   float64 `json:"mib"`         // resident; PostgreSQL with all its processes
	CPU   float64 `json:"cpu_seconds"` // since the start of the trial
	Cores float64 `json:"cores"`       // busy on average since the sample before
}

// Disk is what is on disk, in bytes.
type Disk struct {
	Table    int64 `json:"table"`   // of readings
	Indexes  int64 `json:"indexes"` // of readings
	Feed     int64 `json:"feed"`    // tables of the change feed
	Devices  int64 `json:"devices"` // devices and their units, with indexes
	Database int64 `json:"database"`
	WAL      int64 `json:"wal"` // written since the start of the trial
	Stream   int64 `json:"stream"`
}

// sampler takes samples.
type sampler struct {
	*load

	start     time.Time
	startCPU  map[string]time.Duration
	startWAL  string
	samples   []Sample
	committed int64 // at the last sample
	accepted  int64
	at        time.Time // of the last sample
	maxLag    int64     // since then
}

// lagInterval is the time between two looks at the queue.
const lagInterval = time.Second

func (l *load) newSampler(ctx context.Context) (*sampler, error) {
	s := &sampler{load: l, startCPU: map[string]time.Duration{}, at: time.Now()}
	used, err := l.usage()
	if err != nil {
		return nil, err
	}
	for name, u := range used {
		s.startCPU[name] = u.CPU
	}
	err = l.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&s.startWAL)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the write-ahead log: %w", err)
	}
	s.start = time.Now()
	return s, nil
}

// run takes samples until ctx ends.
func (s *sampler) run(ctx context.Context) {
	retry.Every(ctx, lagInterval, func(ctx context.Context) {
		err := s.look(ctx)
		if err == nil && time.Since(s.at) >= s.options.Every {
			err = s.take(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.Logf("no sample: %v", err)
		}
	})
}

// look reads how many uploads wait.
func (s *sampler) look(ctx context.Context) error {
	info, err := s.service.Consumer(ctx)
	if err == nil {
		s.maxLag = max(s.maxLag, int64(info.NumPending)+int64(info.NumAckPending)) //nolint:gosec // Less than 2^63.
	}
	return err
}

// take takes a sample, and logs it.
func (s *sampler) take(ctx context.Context) error {
	now := time.Now()
	elapsed := now.Sub(s.at).Seconds()
	committed, err := s.stored(ctx)
	if err != nil {
		return err
	}
	used, err := s.usage()
	if err != nil {
		return err
	}
	disk, err := s.disk(ctx)
	if err != nil {
		return err
	}
	accepted := s.load.accepted.Load()
	sample := Sample{
		Seconds: math.Round(now.Sub(s.start).Seconds()), Accepted: round(float64(accepted-s.accepted) / elapsed),
		Committed: round(float64(committed-s.committed) / elapsed), Lag: s.maxLag, Disk: disk,
		Processes: map[string]Process{},
	}
	sample.Latencies, sample.Failed = s.recorder.next()
	for name, u := range used {
		p := Process{MiB: round(float64(u.Memory) / (1 << 20)), CPU: (u.CPU - s.startCPU[name]).Seconds()}
		before := 0.0
		if n := len(s.samples); n > 0 {
			before = s.samples[n-1].Processes[name].CPU
		}
		p.Cores = math.Round((p.CPU-before)/elapsed*1000) / 1000
		sample.Processes[name] = p
	}
	s.samples = append(s.samples, sample)
	s.at, s.accepted, s.committed, s.maxLag = now, accepted, committed, 0
	s.Logf("%.0f s: %.1f uploads/s accepted, %.1f committed, lag %d, %d failed, p99: upload %.3f s, visible %.3f s",
		sample.Seconds, sample.Accepted, sample.Committed, sample.Lag, sample.Failed, sample.Latencies[uploads].P99,
		sample.Latencies[visible].P99)
	return nil
}

// stored returns how many uploads of the stream were acknowledged, which is after the commit.
func (s *sampler) stored(ctx context.Context) (int64, error) {
	info, err := s.service.Consumer(ctx)
	if err != nil {
		return 0, err
	}
	return int64(info.Delivered.Stream) - int64(info.NumAckPending), nil //nolint:gosec // Less than 2^63.
}

// usage returns what each process uses.
func (e *env) usage() (map[string]proctest.Usage, error) {
	used, err := e.serviceUsage()
	if err != nil {
		return nil, err
	}
	if e.postmaster != 0 {
		u, err := proctest.TreeUsage(e.postmaster)
		if err != nil {
			return nil, fmt.Errorf("database: %w", err)
		}
		used["database"] = u
	}
	trial, err := proctest.OwnUsage()
	if err != nil {
		return nil, fmt.Errorf("the trial: %w", err)
	}
	used["trial"] = trial
	return used, nil
}

func (s *sampler) disk(ctx context.Context) (d Disk, err error) {
	err = s.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `
			SELECT coalesce(sum(pg_table_size(c)), 0)::bigint, coalesce(sum(pg_indexes_size(c)), 0)::bigint,
				pg_total_relation_size('feed_batches') + pg_total_relation_size('feed_days'),
				pg_total_relation_size('devices') + pg_total_relation_size('device_hardware'),
				pg_database_size(current_database()), pg_wal_lsn_diff(pg_current_wal_lsn(), $1::text::pg_lsn)::bigint
			FROM show_chunks('readings') c`, s.startWAL).
			Scan(&d.Table, &d.Indexes, &d.Feed, &d.Devices, &d.Database, &d.WAL)
	})
	if err != nil {
		return d, fmt.Errorf("reading the sizes of tables: %w", err)
	}
	stream, err := s.service.JS.Stream(ctx, queue.StreamName)
	if err != nil {
		return d, fmt.Errorf("reading the stream: %w", err)
	}
	d.Stream = int64(stream.CachedInfo().State.Bytes) //nolint:gosec // Less than 2^63.
	return d, nil
}

// round rounds to one decimal.
func round(x float64) float64 { return math.Round(x*10) / 10 }
