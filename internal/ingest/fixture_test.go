package ingest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dbtest"
	"roomsensor/internal/natstest"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// bench is a real queue, and with withTables a real database.
type bench struct {
	server *natstest.Server
	nc     *nats.Conn
	js     jetstream.JetStream
	queue  *queue.Queue
	room   int64           // of the stream, in bytes
	ctx    context.Context //nolint:containedctx // Of the test.
}

func newBench(t testing.TB) *bench {
	t.Helper()
	return newBenchOf(t, 256<<20)
}

// newBenchOf is a bench whose stream takes so many bytes. All who connect want it of that size: who wants more would
// widen it, at a moment of its own.
func newBenchOf(t testing.TB, room int64) *bench {
	t.Helper()
	b := &bench{server: natstest.New(t), room: room}
	b.nc, b.queue = b.connect(t)
	var err error
	b.js, err = jetstream.New(b.nc)
	require.NoError(t, err)
	require.NoError(t, b.queue.Declare(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	b.ctx = ctx
	return b
}

// connect is a connection as another process would have.
func (b *bench) connect(t testing.TB) (*nats.Conn, *queue.Queue) {
	t.Helper()
	nc, err := queue.Connect(b.server.URL, t.Name(), zerolog.Nop())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	q, err := queue.New(nc, queue.Config{Replicas: 1, MaxBytes: b.room})
	require.NoError(t, err)
	return nc, q
}

func (b *bench) publish(t *testing.T, letters ...*letter) {
	t.Helper()
	for _, l := range letters {
		_, err := b.queue.Publish(b.ctx, []queue.Message{{HardwareID: l.unit, Team: l.team, Text: []byte(l.text(l.samples...))}})
		require.NoError(t, err)
	}
}

func (b *bench) publishText(t *testing.T, unit, text string) {
	t.Helper()
	_, err := b.queue.Publish(b.ctx, []queue.Message{{HardwareID: unit, Text: []byte(text)}})
	require.NoError(t, err)
}

// work runs a worker; stop ends it as SIGTERM does and waits for it.
func (b *bench) work(t *testing.T, tables Store) (stop func()) {
	t.Helper()
	_, q := b.connect(t)
	w := NewWorker(WorkerConfig{Queue: q, Store: tables, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry()})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

// settled waits until every message is acknowledged.
func (b *bench) settled(t *testing.T) {
	t.Helper()
	stream, err := b.js.Stream(b.ctx, queue.StreamName)
	require.NoError(t, err)
	last := stream.CachedInfo().State.LastSeq
	require.Eventually(t, func() bool {
		consumer, err := b.js.Consumer(b.ctx, queue.StreamName, queue.ConsumerName)
		return err == nil && consumer.CachedInfo().AckFloor.Stream >= last
	}, patience, 10*time.Millisecond)
}

func (b *bench) consumer(t *testing.T) *jetstream.ConsumerInfo {
	t.Helper()
	consumer, err := b.js.Consumer(b.ctx, queue.StreamName, queue.ConsumerName)
	require.NoError(t, err)
	return consumer.CachedInfo()
}

// tables is a real database with a fleet in it.
type tables struct {
	*store.Store
	sql   *pgxpool.Pool
	fleet *fleet
	units int
}

func newTables(t testing.TB) *tables {
	t.Helper()
	url := dbtest.New(t).URL
	s, err := store.Open(t.Context(), url, store.Ingest)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	tables := &tables{Store: s, sql: pool}
	tables.enlist(t)
	return tables
}

// enlist puts another fleet, with units of its own, into the tables.
func (b *tables) enlist(t require.TestingT) {
	ctx := context.Background()
	var teams [2]uuid.UUID
	for i := range teams {
		require.NoError(t, b.sql.QueryRow(ctx, "INSERT INTO teams (name) VALUES ('t') RETURNING id").Scan(&teams[i]))
	}
	var units [3]string
	for i := range units {
		b.units++
		units[i] = fmt.Sprint("dev:", b.units)
	}
	var devices [3]uuid.UUID
	for i, team := range [3]uuid.UUID{teams[0], teams[0], teams[1]} {
		require.NoError(t, b.sql.QueryRow(ctx,
			"INSERT INTO devices (team_id, hardware_id) VALUES ($1, $2) RETURNING id", team, units[0]).Scan(&devices[i]))
	}
	b.fleet = newFleet(teams[0], teams[1], devices[0], devices[1], devices[2], units)
	b.fleet.base = uint64(1000 * b.units)
	for _, installations := range b.fleet.units {
		for _, i := range installations {
			_, err := b.sql.Exec(ctx, "INSERT INTO device_hardware VALUES ($1, $2, $3, $4)", i.HardwareID, i.DeviceID, i.From, i.To)
			require.NoError(t, err)
		}
	}
}

// snapshot reads what the tables hold of the fleet. The instants of arrival
// are those of the model when they are asked for by sequence.
func (b *tables) snapshot(t require.TestingT) *table {
	ctx := context.Background()
	got := newTable()
	rows, err := b.sql.Query(ctx, `SELECT device_id, bucket_at, measured_at, co2_ppm, temp_c, humidity_pct, lux, spl_db
		FROM readings WHERE device_id IN ($1, $2, $3)`, b.fleet.a, b.fleet.b, b.fleet.c)
	require.NoError(t, err)
	for rows.Next() {
		var device uuid.UUID
		var bucket time.Time
		var m roomsensor.Measurement
		var values [roomsensor.MetricCount]*float32
		require.NoError(t, rows.Scan(&device, &bucket, &m.MeasuredAt, &values[0], &values[1], &values[2], &values[3], &values[4]))
		m.MeasuredAt = m.MeasuredAt.UTC()
		for i, x := range values {
			if x != nil {
				m.Values.Set(roomsensor.Metrics[i], *x)
			}
		}
		require.True(t, bucket.Equal(m.Bucket()))
		got.rows[rowKey(device, bucket)] = m
	}
	require.NoError(t, rows.Err())
	b.readSeen(t, got)
	b.readRejects(t, got)
	return got
}

func (b *tables) readSeen(t require.TestingT, got *table) {
	rows, err := b.sql.Query(context.Background(), `SELECT id, last_seen_at, rssi_dbm, signal_bars, signal_at, firmware_version, firmware_at
		FROM devices WHERE id IN ($1, $2, $3) AND last_seen_at IS NOT NULL`, b.fleet.a, b.fleet.b, b.fleet.c)
	require.NoError(t, err)
	for rows.Next() {
		var seen roomsensor.DeviceSeen
		var signal roomsensor.Signal
		var signalAt, firmwareAt *time.Time
		require.NoError(t, rows.Scan(&seen.DeviceID, &seen.LastSeenAt, &signal.RSSI, &signal.Bars, &signalAt, &seen.Firmware, &firmwareAt))
		seen.LastSeenAt = seen.LastSeenAt.UTC()
		if signalAt != nil {
			seen.Signal, seen.SignalAt = &signal, signalAt.UTC()
		}
		if firmwareAt != nil {
			seen.FirmwareAt = firmwareAt.UTC()
		}
		got.seen[seen.DeviceID.String()] = seen
	}
	require.NoError(t, rows.Err())
}

func (b *tables) readRejects(t require.TestingT, got *table) {
	rows, err := b.sql.Query(context.Background(), `SELECT stream_sequence, reason, payload FROM rejected_uploads
		WHERE hardware_id IN ($1, $2, $3)`, b.fleet.first, b.fleet.second, b.fleet.unknown)
	require.NoError(t, err)
	for rows.Next() {
		var sequence int64
		var reason string
		var payload []byte
		require.NoError(t, rows.Scan(&sequence, &reason, &payload))
		key := rejectKey(uint64(sequence), roomsensor.Reason(reason))
		require.NotContains(t, got.rejects, key)
		got.rejects[key] = string(payload)
	}
	require.NoError(t, rows.Err())
}

// stamps are the times of every write of a reading, as text.
func (b *tables) stamps(t *testing.T) (list []string) {
	t.Helper()
	rows, err := b.sql.Query(t.Context(), "SELECT (device_id, bucket_at, ingested_at)::text || xmin::text FROM readings ORDER BY device_id, bucket_at")
	require.NoError(t, err)
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		list = append(list, text)
	}
	require.NoError(t, rows.Err())
	return list
}

func queueMessage(unit string, text []byte, team string) *nats.Msg {
	return &nats.Msg{Subject: "uploads." + unit, Data: text, Header: nats.Header{queue.TeamHeader: {team}}}
}

// measured is the value of a counter or gauge.
func measured(t *testing.T, metric prometheus.Metric) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, metric.Write(&m))
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}
