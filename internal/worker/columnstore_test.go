package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/dbtest"
)

// lastDay is the day of the newest readings. It follows the clock, because the server converts and refreshes chunks by
// their age.
var lastDay = time.Now().UTC().Truncate(24 * time.Hour).Add(-48 * time.Hour)

// installed is a device and its unit, which was always in it.
type installed struct {
	device uuid.UUID
	unit   string
}

// install inserts devices of one team with their units.
func (db *database) install(t *testing.T, n int) []installed {
	t.Helper()
	list := make([]installed, n)
	for i := range list {
		list[i].unit = fmt.Sprint("dev:", 9_000_000+i)
		require.NoError(t, db.sql.QueryRow(t.Context(), `
			WITH d AS (INSERT INTO devices (team_id, hardware_id) VALUES ($1, $2) RETURNING id),
			     h AS (INSERT INTO device_hardware SELECT $2, id FROM d)
			SELECT id FROM d`, db.ours, list[i].unit).Scan(&list[i].device))
	}
	return list
}

// fill inserts readings of every installed device at an interval, measured at the start of their bucket, and moves all
// but the newest chunks to the columnstore.
func (db *database) fill(t *testing.T, from time.Time, interval time.Duration, n int) {
	t.Helper()
	_, err := db.sql.Exec(t.Context(), `
		INSERT INTO readings (device_id, bucket_at, co2_ppm, measured_at)
		SELECT id, s.bucket, 400, s.bucket FROM devices,
		     LATERAL (SELECT $1::timestamptz + i * $2::interval AS bucket FROM generate_series(0, $3 - 1) i) s
		WHERE hardware_id LIKE 'dev:9______'`, from, interval, n)
	require.NoError(t, err)
	_, err = db.sql.Exec(t.Context(), `DO $$ DECLARE c regclass; BEGIN
		FOR c IN SELECT show_chunks('readings', older_than => INTERVAL '9 days') LOOP CALL convert_to_columnstore(c); END LOOP; END $$`)
	require.NoError(t, err)
}

// burst returns an upload of a device with readings at an interval.
func (i *installed) burst(sequence int, from time.Time, interval time.Duration, n int) *delivery {
	readings := make([]string, n)
	for j := range readings {
		readings[j] = readingAt(from.Add(time.Duration(j)*interval), `"co2_ppm":500`)
	}
	return parsed(roomsensor.Arrival{At: lastDay.Add(21 * time.Hour), Sequence: uint64(sequence)}, i.unit, messageOf(i.unit, readings...).Text)
}

// A burst that touches more of the columnstore than one transaction may decompress is stored in parts, and again
// without a change.
func TestColumnstoreBurst(t *testing.T) {
	t.Parallel()
	dbtest.NeedCommunity(t)
	db := newDatabase(t)
	devices := db.install(t, 120)
	const days = 90
	from := lastDay.Add(-days * 24 * time.Hour)
	db.fill(t, from, time.Hour, days*24)
	var burst []*delivery
	for i := range devices { // Later measurements of existing buckets, half a week apart: some in every chunk.
		burst = append(burst, devices[i].burst(i+1, from.Add(time.Second), 84*time.Hour, days*2/7))
	}
	results, err := db.writer().resolve(t.Context(), burst)
	require.NoError(t, err)
	_, err = db.WriteBatch(t.Context(), assemble(results))
	require.ErrorIs(t, err, roomsensor.ErrRefused, "or this test proves nothing")

	write := func() []string {
		writeAll(t, db.writer(), [][]*delivery{burst})
		require.Equal(t, len(devices)*days*24, db.count(t, "readings"))
		require.Equal(t, len(devices)*(days*2/7), db.count(t, "readings WHERE co2_ppm = 500"))
		// The columnstore has no xmin.
		return db.texts(t, "SELECT (device_id, bucket_at, ingested_at)::text FROM readings WHERE co2_ppm = 500 ORDER BY 1")
	}
	first := write()
	require.Equal(t, first, write())
	require.Zero(t, db.count(t, "rejected_uploads"))
}

// raceFor returns how long writers and policies run at the same time: 4 seconds, or ROOMSENSOR_RACE_FOR.
func raceFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("ROOMSENSOR_RACE_FOR")
	if text == "" {
		return 4 * time.Second
	}
	length, err := time.ParseDuration(text)
	require.NoError(t, err)
	return length
}

// Writers store readings while chunks are converted to the columnstore and back, the aggregate is refreshed and old
// chunks are dropped. In the end the table and the aggregate are what a model in memory expects.
func TestColumnstorePolicies(t *testing.T) {
	t.Parallel()
	dbtest.NeedCommunity(t)
	race := &race{database: newDatabase(t), model: map[string]roomsensor.Measurement{}}
	race.devices = race.install(t, 20)
	race.fill(t, lastDay.Add(-40*24*time.Hour), 6*time.Hour, 40*4)
	ctx, cancel := context.WithTimeout(t.Context(), raceFor(t))
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for seed := range uint64(3) {
		group.Go(func() error { return race.write(ctx, rand.New(rand.NewPCG(seed, 1))) })
	}
	group.Go(func() error { return race.policies(ctx) })
	require.NoError(t, group.Wait())
	t.Logf("%d batches, %d retries; %d runs of policies, %d of them failed",
		race.batches, race.retries, race.ran, race.failed)
	require.Positive(t, race.batches)
	race.check(t)
}

type race struct {
	*database
	devices []installed

	mu               sync.Mutex
	model            map[string]roomsensor.Measurement
	batches, retries int
	ran, failed      int
}

// write stores batches of random uploads until ctx ends. It retries a failed batch, as the worker does.
func (r *race) write(ctx context.Context, random *rand.Rand) error {
	for ctx.Err() == nil {
		batch := make([]*delivery, 1+random.IntN(8))
		for i := range batch {
			device := &r.devices[random.IntN(len(r.devices))]
			from := lastDay.Add(-time.Duration(random.IntN(40*288)) * roomsensor.BucketLength).Add(time.Duration(random.IntN(200)) * time.Second)
			batch[i] = device.burst(random.Int(), from, roomsensor.BucketLength, 1+random.IntN(40))
			r.record(device, batch[i])
		}
		for {
			_, err := r.writer().write(context.WithoutCancel(ctx), batch)
			r.mu.Lock()
			r.batches++
			if err != nil {
				r.retries++
			}
			r.mu.Unlock()
			if err == nil {
				break
			}
		}
	}
	return nil
}

func (r *race) record(device *installed, d *delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reading := range d.upload.Readings {
		key := rowKey(device.device, reading.Bucket())
		if old, ok := r.model[key]; ok {
			reading.Measurement = roomsensor.Merge(old, reading.Measurement)
		}
		r.model[key] = reading.Measurement
	}
}

// policies runs the steps of the policies without a pause. A step that does not get its locks fails, and not the
// writers.
func (r *race) policies(ctx context.Context) error {
	steps := []string{
		`DO $$ DECLARE c regclass; BEGIN FOR c IN SELECT show_chunks('readings', older_than => INTERVAL '9 days')
			LOOP CALL convert_to_columnstore(c, if_not_columnstore => true); END LOOP; END $$`,
		`CALL refresh_continuous_aggregate('readings_hourly', NULL, now() - INTERVAL '2 days')`,
		`INSERT INTO readings (device_id, bucket_at) SELECT gen_random_uuid(), '2020-01-01Z' FROM generate_series(1, 100)`,
		`SELECT drop_chunks('readings', older_than => TIMESTAMPTZ '2020-02-01Z')`,
		`DO $$ DECLARE c regclass; BEGIN FOR c IN SELECT show_chunks('readings', older_than => INTERVAL '30 days')
			LOOP CALL convert_to_rowstore(c, if_columnstore => true); END LOOP; END $$`,
	}
	conn, err := r.sql.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	for i := 0; ctx.Err() == nil; i++ {
		if _, err := conn.Exec(context.WithoutCancel(ctx), "SET lock_timeout = '500ms'"); err != nil {
			return err
		}
		_, err := conn.Exec(context.WithoutCancel(ctx), steps[i%len(steps)])
		r.ran++
		if err != nil {
			r.failed++
		}
	}
	return nil
}

func (r *race) check(t *testing.T) {
	t.Helper()
	require.Zero(t, r.count(t, "rejected_uploads"))
	rows, err := r.sql.Query(t.Context(),
		`SELECT device_id, bucket_at, measured_at, co2_ppm FROM readings WHERE co2_ppm = 500`)
	require.NoError(t, err)
	got := 0
	for rows.Next() {
		var device uuid.UUID
		var bucket, measured time.Time
		var co2 float32
		require.NoError(t, rows.Scan(&device, &bucket, &measured, &co2))
		want, ok := r.model[rowKey(device, bucket)]
		require.True(t, ok, "a reading that was never sent")
		require.True(t, want.MeasuredAt.Equal(measured))
		got++
	}
	require.NoError(t, rows.Err())
	require.Len(t, r.model, got)

	_, err = r.sql.Exec(t.Context(), `CALL refresh_continuous_aggregate('readings_hourly', NULL, now() - INTERVAL '2 days')`)
	require.NoError(t, err)
	var wrong int
	require.NoError(t, r.sql.QueryRow(t.Context(), `
		SELECT count(*) FROM readings_hourly h
		FULL JOIN (SELECT device_id, date_trunc('hour', bucket_at, 'UTC') AS hour, count(co2_ppm) AS n,
		                  sum(co2_ppm::double precision) AS total, max(co2_ppm) AS most, min(co2_ppm) AS least
		           FROM readings GROUP BY 1, 2) r USING (device_id, hour)
		WHERE (h.co2_ppm_count, h.co2_ppm_sum, h.co2_ppm_max, h.co2_ppm_min)
		      IS DISTINCT FROM (r.n, r.total, r.most, r.least)`).Scan(&wrong))
	require.Zero(t, wrong, "hours that differ from what the readings give")
}
