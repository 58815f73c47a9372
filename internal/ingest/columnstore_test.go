package ingest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/dbtest"
	"roomsensor/internal/roomsensor"
)

// room is a device of these tests and its unit, which always sat in it.
type room struct {
	device uuid.UUID
	unit   string
}

// rooms puts devices of one team into the tables.
func (b *tables) rooms(t *testing.T, n int) []room {
	t.Helper()
	rooms := make([]room, n)
	for i := range rooms {
		rooms[i].unit = fmt.Sprint("dev:", 9_000_000+i)
		require.NoError(t, b.sql.QueryRow(t.Context(), `
			WITH d AS (INSERT INTO devices (team_id, hardware_id) VALUES ($1, $2) RETURNING id),
			     h AS (INSERT INTO device_hardware SELECT $2, id FROM d)
			SELECT id FROM d`, b.fleet.ours, rooms[i].unit).Scan(&rooms[i].device))
	}
	return rooms
}

// fill stores a reading of each room every so often, measured at the start of
// its bucket, and moves all but the newest chunks to the columnstore.
func (b *tables) fill(t *testing.T, from time.Time, every time.Duration, n int) {
	t.Helper()
	_, err := b.sql.Exec(t.Context(), `
		INSERT INTO readings (device_id, bucket_at, co2_ppm, measured_at)
		SELECT id, s.bucket, 400, s.bucket FROM devices,
		     LATERAL (SELECT $1::timestamptz + i * $2::interval AS bucket FROM generate_series(0, $3 - 1) i) s
		WHERE hardware_id LIKE 'dev:9______'`, from, every, n)
	require.NoError(t, err)
	_, err = b.sql.Exec(t.Context(), `DO $$ DECLARE c regclass; BEGIN
		FOR c IN SELECT show_chunks('readings', older_than => INTERVAL '9 days') LOOP CALL convert_to_columnstore(c); END LOOP; END $$`)
	require.NoError(t, err)
}

// burst is an upload of a room that brings readings from an instant on.
func (r *room) burst(sequence int, from time.Time, every time.Duration, n int) *delivery {
	readings := make([]string, n)
	for i := range readings {
		readings[i] = at(from.Add(time.Duration(i)*every), `"co2_ppm":500`)
	}
	return textOf(r.unit, uint64(sequence), strings.Join(readings, ","))
}

// A burst that touches more of the columnstore than one transaction may unpack
// lands all the same, in parts, and again without a change.
func TestBurstIntoTheColumnstore(t *testing.T) {
	t.Parallel()
	dbtest.NeedCommunity(t)
	tables := newTables(t)
	rooms := tables.rooms(t, 120)
	const days = 90
	from := day.Add(-days * 24 * time.Hour)
	tables.fill(t, from, time.Hour, days*24)
	var burst []*delivery
	for i := range rooms { // Later measurements of buckets that are there, half a week apart: some in every chunk.
		burst = append(burst, rooms[i].burst(i+1, from.Add(time.Second), 84*time.Hour, days*2/7))
	}
	outcomes := route(burst, installationsOf(t, tables, burst))
	_, err := tables.WriteBatch(t.Context(), assemble(outcomes))
	require.ErrorIs(t, err, roomsensor.ErrTooMuch, "or this test shows nothing")

	for range 2 {
		_, err = tables.lander().land(t.Context(), burst)
		require.NoError(t, err)
		require.Equal(t, len(rooms)*days*24, tables.count(t, ""))
		require.Equal(t, len(rooms)*(days*2/7), tables.count(t, "WHERE co2_ppm = 500"))
	}
	require.Zero(t, tables.countOf(t, "rejected_uploads"))
}

// Ninety days of every bucket, of which the columnstore holds one in twelve.
func TestLongBurstIntoTheColumnstore(t *testing.T) {
	t.Parallel()
	dbtest.NeedCommunity(t)
	tables := newTables(t)
	rooms := tables.rooms(t, 2)
	const buckets = 90 * 288
	from := day.Add(-90 * 24 * time.Hour)
	tables.fill(t, from, time.Hour, buckets/12)
	var burst []*delivery
	for i := range rooms {
		for first := 0; first < buckets; first += 2_592 {
			burst = append(burst, rooms[i].burst(len(burst)+1, from.Add(time.Duration(first)*roomsensor.BucketLength+time.Second),
				roomsensor.BucketLength, 2_592))
		}
	}
	var before []string
	for range 2 {
		for _, d := range burst {
			_, err := tables.lander().land(t.Context(), []*delivery{d})
			require.NoError(t, err)
		}
		require.Equal(t, len(rooms)*buckets, tables.count(t, "WHERE co2_ppm = 500"))
		stamps := tables.arrivals(t)
		if before != nil {
			require.Equal(t, before, stamps)
		}
		before = stamps
	}
	require.Zero(t, tables.countOf(t, "rejected_uploads"))
}

func installationsOf(t *testing.T, tables *tables, deliveries []*delivery) map[string][]roomsensor.Installation {
	t.Helper()
	units, err := tables.lander().installations(t.Context(), deliveries)
	require.NoError(t, err)
	return units
}

func (b *tables) count(t *testing.T, where string) (n int) {
	t.Helper()
	require.NoError(t, b.sql.QueryRow(t.Context(), "SELECT count(*) FROM readings "+where).Scan(&n))
	return n
}

func (b *tables) countOf(t *testing.T, table string) (n int) {
	t.Helper()
	require.NoError(t, b.sql.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
	return n
}

// arrivals are what a replay must not change. Unlike stamps it has no xmin,
// which the columnstore has none of.
func (b *tables) arrivals(t *testing.T) (list []string) {
	t.Helper()
	rows, err := b.sql.Query(t.Context(), "SELECT (device_id, bucket_at, ingested_at)::text FROM readings ORDER BY device_id, bucket_at")
	require.NoError(t, err)
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		list = append(list, text)
	}
	require.NoError(t, rows.Err())
	return list
}

// raceFor is how long writers and policies race; more by
// ROOMSENSOR_RACE_FOR=10m.
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

// While chunks go into the columnstore and out of it, the aggregate is
// refreshed and old chunks are dropped, writers store what they have; in the
// end the table is what plain arithmetic makes of it, and so is the aggregate.
func TestWritersRaceThePolicies(t *testing.T) {
	t.Parallel()
	dbtest.NeedCommunity(t)
	race := &race{tables: newTables(t), oracle: map[string]roomsensor.Measurement{}}
	race.rooms = race.tables.rooms(t, 20)
	race.fill(t, day.Add(-40*24*time.Hour), 6*time.Hour, 40*4)
	ctx, cancel := context.WithTimeout(t.Context(), raceFor(t))
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for seed := range uint64(3) {
		group.Go(func() error { return race.write(ctx, rand.New(rand.NewPCG(seed, 1))) })
	}
	group.Go(func() error { return race.policies(ctx) })
	require.NoError(t, group.Wait())
	t.Logf("%d batches, %d of them tried again; policies ran %d times and gave way %d times",
		race.batches, race.retries, race.ran, race.gaveWay)
	require.Positive(t, race.batches)
	race.check(t)
}

type race struct {
	*tables
	rooms []room

	mu               sync.Mutex
	oracle           map[string]roomsensor.Measurement
	batches, retries int
	ran, gaveWay     int
}

// write stores batches of random uploads until ctx ends; one that fails is
// stored again, as the worker would.
func (r *race) write(ctx context.Context, dice *rand.Rand) error {
	for ctx.Err() == nil {
		batch := make([]*delivery, 1+dice.IntN(8))
		for i := range batch {
			room := &r.rooms[dice.IntN(len(r.rooms))]
			from := day.Add(-time.Duration(dice.IntN(40*288)) * roomsensor.BucketLength).Add(time.Duration(dice.IntN(200)) * time.Second)
			batch[i] = room.burst(dice.Int(), from, roomsensor.BucketLength, 1+dice.IntN(40))
			r.note(room, batch[i])
		}
		for {
			_, err := r.lander().land(context.WithoutCancel(ctx), batch)
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

func (r *race) note(room *room, d *delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reading := range d.upload.Readings {
		key := rowKey(room.device, reading.Bucket())
		if old, ok := r.oracle[key]; ok {
			reading.Measurement = roomsensor.Unite(old, reading.Measurement)
		}
		r.oracle[key] = reading.Measurement
	}
}

// policies do what the jobs of the policies do, without a pause. One that does
// not get its locks gives way to the writers.
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
			r.gaveWay++
		}
	}
	return nil
}

func (r *race) check(t *testing.T) {
	t.Helper()
	require.Zero(t, r.countOf(t, "rejected_uploads"))
	rows, err := r.sql.Query(t.Context(),
		`SELECT device_id, bucket_at, measured_at, co2_ppm FROM readings WHERE co2_ppm = 500`)
	require.NoError(t, err)
	got := 0
	for rows.Next() {
		var device uuid.UUID
		var bucket, measured time.Time
		var co2 float32
		require.NoError(t, rows.Scan(&device, &bucket, &measured, &co2))
		want, ok := r.oracle[rowKey(device, bucket)]
		require.True(t, ok, "nobody sent this")
		require.True(t, want.MeasuredAt.Equal(measured))
		got++
	}
	require.NoError(t, rows.Err())
	require.Len(t, r.oracle, got)

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
