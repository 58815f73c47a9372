package world

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/test/dbtest"
	"roomsensor/test/ledger"
)

func TestMain(m *testing.M) { dbtest.Verify(m) }

const batches = 60

// TestTables writes random batches, which often meet in the same rows, into the database and into the model.
func TestTables(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t).URL
	s, err := store.Open(t.Context(), url, store.Ingest)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)

	var team uuid.UUID
	require.NoError(t, pool.QueryRow(t.Context(), "INSERT INTO teams (name) VALUES ('t') RETURNING id").Scan(&team))
	devices := make([]uuid.UUID, 3)
	for i := range devices {
		require.NoError(t, pool.QueryRow(t.Context(),
			"INSERT INTO devices (team_id, hardware_id) VALUES ($1, 'dev:1') RETURNING id", team).Scan(&devices[i]))
	}
	slices.SortFunc(devices, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })

	rng, model := newRNG(1, 0), newContent()
	ingested := map[ledger.Key]time.Time{}
	for i := range batches {
		b := randomBatch(rng, devices, team, i/5)
		if i%2 == 1 {
			s.MinCopyRows = 1 // From now on, with COPY.
		}
		began := time.Unix(int64(i), 0)
		want, err := model.write(&b, began)
		require.NoError(t, err, "batch %d", i)
		changed, err := s.WriteBatch(t.Context(), b)
		require.NoError(t, err, "batch %d", i)
		require.Equal(t, want, changed, "batch %d", i)

		stored := readContent(t, pool)
		for key, is := range model.rows {
			got := stored.rows[key]
			require.Equal(t, is.Measurement, got.Measurement, "batch %d", i)
			require.Equal(t, is.ingestedAt.Equal(began), !got.ingestedAt.Equal(ingested[key]), "ingested_at, batch %d", i)
			ingested[key] = got.ingestedAt
		}
		require.Len(t, stored.rows, len(model.rows), "batch %d", i)
		require.Equal(t, model.states, stored.states, "batch %d", i)
		require.Equal(t, model.rejects, stored.rejects, "batch %d", i)
	}
}

// randomBatch returns a batch of an hour as a worker makes it: sorted, and each key once.
func randomBatch(rng *rand.Rand, devices []uuid.UUID, team uuid.UUID, hour int) (b roomsensor.Batch) {
	day := time.Date(2026, time.May, 4, hour, 0, 0, 0, time.UTC)
	percent := func(n int) bool { return rng.IntN(100) < n }
	for _, device := range devices {
		for bucket := range 4 {
			if percent(40) {
				continue
			}
			at := day.Add(time.Duration(bucket)*roomsensor.BucketLength + time.Duration(rng.IntN(3))*time.Minute)
			row := roomsensor.DeviceMeasurement{DeviceID: device, Measurement: roomsensor.Measurement{MeasuredAt: at}}
			for _, m := range roomsensor.Metrics {
				if percent(30) {
					row.Values.Set(m, float32(rng.IntN(3)))
				}
			}
			b.Rows = append(b.Rows, row)
		}
		seen := roomsensor.DeviceHeartbeat{DeviceID: device, LastSeenAt: day.Add(time.Duration(rng.IntN(8)) * time.Hour)}
		if percent(50) {
			seen.Signal, seen.SignalAt = &roomsensor.Signal{RSSI: new(int32(-rng.IntN(4)))}, seen.LastSeenAt
			if percent(50) {
				seen.Signal.Bars = new(int16(rng.IntN(3)))
			}
		}
		if percent(50) {
			seen.Firmware, seen.FirmwareAt = new([]string{"1", "B", "a"}[rng.IntN(3)]), seen.LastSeenAt
		}
		b.Seen = append(b.Seen, seen)
	}
	b.Rejects = randomRejects(rng, day, team)
	return b
}

func randomRejects(rng *rand.Rand, at time.Time, team uuid.UUID) (list []roomsensor.Reject) {
	for i := range uint64(3) {
		if rng.IntN(2) == 0 {
			list = append(list, roomsensor.Reject{
				Arrival: roomsensor.Arrival{At: at, Sequence: i, Team: &team},
				Reason:  roomsensor.ReasonNoMetric, Detail: "none", Payload: []byte{byte(rng.IntN(256))},
			})
		}
	}
	return list
}

// readContent reads the tables.
func readContent(t *testing.T, pool *pgxpool.Pool) *content {
	t.Helper()
	ctx, c := context.Background(), newContent()
	rows, err := pool.Query(ctx, `SELECT device_id, bucket_at, measured_at, ingested_at,
		co2_ppm, temp_c, humidity_pct, lux, spl_db FROM readings`)
	require.NoError(t, err)
	for rows.Next() {
		var device uuid.UUID
		var bucket time.Time
		var r row
		var v [roomsensor.MetricCount]*float32
		require.NoError(t, rows.Scan(&device, &bucket, &r.MeasuredAt, &r.ingestedAt, &v[0], &v[1], &v[2], &v[3], &v[4]))
		r.MeasuredAt, r.Values = r.MeasuredAt.UTC(), roomsensor.ValuesOf(v)
		c.rows[ledger.KeyOf(device, bucket)] = r
	}
	rows, err = pool.Query(ctx, `SELECT device_id, last_seen_at, rssi_dbm, signal_bars, signal_at,
		firmware_version, firmware_at FROM device_state`)
	require.NoError(t, err)
	for rows.Next() {
		var s roomsensor.DeviceHeartbeat
		var signal roomsensor.Signal
		var signalAt, firmwareAt *time.Time
		require.NoError(t, rows.Scan(&s.DeviceID, &s.LastSeenAt, &signal.RSSI, &signal.Bars, &signalAt, &s.Firmware, &firmwareAt))
		s.LastSeenAt = s.LastSeenAt.UTC()
		if signalAt != nil {
			s.Signal, s.SignalAt = &signal, signalAt.UTC()
		}
		if firmwareAt != nil {
			s.FirmwareAt = firmwareAt.UTC()
		}
		c.states[s.DeviceID] = s
	}
	rows, err = pool.Query(ctx, "SELECT received_at, stream_sequence, team_id, reason, detail, payload FROM rejected_uploads")
	require.NoError(t, err)
	for rows.Next() {
		var r roomsensor.Reject
		var team uuid.UUID
		require.NoError(t, rows.Scan(&r.Arrival.At, &r.Arrival.Sequence, &team, &r.Reason, &r.Detail, &r.Payload))
		r.Arrival.At, r.Arrival.Team = r.Arrival.At.UTC(), &team
		c.rejects[rejectKey{r.Arrival.At, r.Arrival.Sequence, r.Reason}] = r
	}
	require.NoError(t, rows.Err())
	return c
}
