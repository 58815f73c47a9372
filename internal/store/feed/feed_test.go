package feed_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/internal/store/feed"
	"roomsensor/test/conformance"
)

// place is the key of a reading.
type place struct {
	device uuid.UUID
	bucket time.Time
}

// follower is a client of the change feed. It asks two stores in turn, as if they were replicas.
type follower struct {
	stores   []*store.Store
	team     uuid.UUID
	limit    int
	round    roomsensor.FeedRound
	cursor   *time.Time // nil until it has a watermark
	after    *roomsensor.FeedPosition
	copy     map[place]roomsensor.Reading
	repeated []roomsensor.Change
	pages    int

	deletions int // per page; 0: none
	deleted   []roomsensor.ReadingDeletion
}

// newFollower returns a follower that begins at a time.
func (f *fixture) newFollower(from time.Time, stores ...*store.Store) *follower {
	return &follower{
		stores: stores, team: f.TeamID, limit: 3, round: roomsensor.FeedRound{From: from, To: from},
		copy: map[place]roomsensor.Reading{},
	}
}

// page reads a page, of a new round if the last one is complete. It returns false if there is nothing to read.
func (f *follower) page(t testing.TB) bool {
	t.Helper()
	s := f.stores[f.pages%len(f.stores)]
	f.pages++
	if f.round.Empty() {
		watermark, err := s.FeedWatermark(t.Context())
		require.NoError(t, err)
		if !f.round.From.Before(watermark.At) {
			return false
		}
		f.round.To = watermark.At
	}
	taken := 0
	query := roomsensor.FeedQuery{
		Round: f.round, After: f.after, Most: f.limit + 1, Cursor: f.cursor, Deletions: f.deletions,
	}
	var changed []roomsensor.Change
	progress, err := s.EachChange(t.Context(), f.team, query,
		func(change *roomsensor.Change) bool {
			if taken == f.limit {
				return false
			}
			taken++
			changed = append(changed, *change)
			return true
		})
	require.NoError(t, err)
	f.apply(changed, progress.Deleted)
	if !progress.Until.IsZero() {
		f.round.To = progress.Until
	}
	f.cursor = new(f.round.To)
	if f.after = progress.After; progress.Done {
		f.round.From, f.after = f.round.To, nil
	}
	return true
}

// apply changes the copy as a page says: first its deletions, then its readings.
func (f *follower) apply(changed []roomsensor.Change, deleted []roomsensor.ReadingDeletion) {
	for _, d := range deleted {
		f.deleted = append(f.deleted, d)
		maps.DeleteFunc(f.copy, func(key place, _ roomsensor.Reading) bool {
			return key.device == d.DeviceID && d.Contains(key.bucket)
		})
	}
	for _, change := range changed {
		key := place{change.DeviceID, change.BucketAt}
		if before, ok := f.copy[key]; ok && before == change.Reading {
			f.repeated = append(f.repeated, change)
		}
		f.copy[key] = change.Reading
	}
}

// catchUp reads until everything that is committed now is in the copy.
func (f *follower) catchUp(t testing.TB) {
	t.Helper()
	var now time.Time
	require.NoError(t, f.stores[0].Pool.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&now))
	require.Eventually(t, func() bool {
		for f.page(t) {
			if f.round.Empty() {
				break
			}
		}
		return f.round.Empty() && f.round.From.After(now)
	}, patience, 20*time.Millisecond)
}

// requireCopy compares the copy with the table.
func (f *follower) requireCopy(t testing.TB, table map[place]roomsensor.Reading, format string, args ...any) {
	t.Helper()
	what := fmt.Sprintf(format, args...)
	for key, want := range table {
		got, ok := f.copy[key]
		require.True(t, ok && got == want, "%s: at %v is %v, not %v", what, key, got, want)
	}
	require.Len(t, f.copy, len(table), what)
}

// table returns all readings of the table.
func (f *fixture) table(t testing.TB) map[place]roomsensor.Reading {
	t.Helper()
	rows, err := f.SQL.Query(t.Context(), `SELECT device_id, bucket_at, co2_ppm, ingested_at FROM readings`)
	require.NoError(t, err)
	all := map[place]roomsensor.Reading{}
	for rows.Next() {
		var key place
		var reading roomsensor.Reading
		var co2 float32
		require.NoError(t, rows.Scan(&key.device, &key.bucket, &co2, &reading.IngestedAt))
		key.bucket = key.bucket.UTC()
		reading.BucketAt, reading.IngestedAt = key.bucket, reading.IngestedAt.UTC()
		reading.Values.Set(roomsensor.CO2, co2)
		all[key] = reading
	}
	require.NoError(t, rows.Err())
	return all
}

// feedWriter is a connection that writes readings of its own device: a worker, or another program with transactions of
// some isolation level.
type feedWriter struct {
	store     *store.Store
	conn      *pgx.Conn
	worker    bool
	isolation pgx.TxIsoLevel
	device    uuid.UUID
	tx        pgx.Tx // nil: none
	value     float32
}

// feedBuckets are recent and old buckets, in several chunks.
var feedBuckets = []string{
	"2026-11-20T10:00:00Z", "2026-11-20T10:05:00Z", "2026-11-19T23:55:00Z", "2026-10-01T00:00:00Z", "2026-08-01T12:00:00Z",
}

func (w *feedWriter) begin(t *testing.T) {
	t.Helper()
	options := pgx.TxOptions{IsoLevel: w.isolation}
	if w.worker {
		options = pgx.TxOptions{BeginQuery: "begin;" + db.WorkerSet + ";" + db.FeedBegin}
	}
	var err error
	w.tx, err = w.conn.BeginTx(t.Context(), options)
	require.NoError(t, err)
}

// write writes a reading as ReadingUpsert does, or with the statements of another program.
func (w *feedWriter) write(t *testing.T, random *rand.Rand) {
	t.Helper()
	bucket := at(feedBuckets[random.IntN(len(feedBuckets))])
	w.value++
	if !w.worker {
		_, err := w.tx.Exec(t.Context(), `INSERT INTO readings (device_id, bucket_at, co2_ppm) VALUES ($1, $2, $3)
			ON CONFLICT (device_id, bucket_at) DO UPDATE SET co2_ppm = excluded.co2_ppm, ingested_at = now()`,
			w.device, bucket, w.value)
		require.NoError(t, err)
		return
	}
	m := roomsensor.DeviceMeasurement{DeviceID: w.device}
	m.MeasuredAt = bucket
	m.Values.Set(roomsensor.CO2, w.value)
	_, err := w.store.WriteIn(t.Context(), w.tx, roomsensor.Batch{Rows: []roomsensor.DeviceMeasurement{m}})
	require.NoError(t, err)
}

// takeNumber records the key of what was written with a number of a sequence, for the naive follower.
func (w *feedWriter) takeNumber(t *testing.T) {
	t.Helper()
	_, err := w.tx.Exec(t.Context(), `INSERT INTO numbered (device_id, bucket_at)
		SELECT device_id, bucket_at FROM readings WHERE device_id = $1 AND co2_ppm = $2`, w.device, w.value)
	require.NoError(t, err)
}

// naiveReader is a follower that does without a watermark. Its query gets the highest number that it has seen.
type naiveReader struct {
	sql  string
	last string
	copy map[place]float32
}

func (n *naiveReader) read(t *testing.T, conn *pgxpool.Pool) {
	t.Helper()
	rows, err := conn.Query(t.Context(), n.sql, n.last)
	require.NoError(t, err)
	for rows.Next() {
		var key place
		var value float32
		require.NoError(t, rows.Scan(&key.device, &key.bucket, &value, &n.last))
		key.bucket = key.bucket.UTC()
		n.copy[key] = value
	}
	require.NoError(t, rows.Err())
}

func (n *naiveReader) missed(table map[place]roomsensor.Reading) bool {
	return !maps.EqualFunc(n.copy, table, func(got float32, want roomsensor.Reading) bool {
		value, _ := want.Values.Get(roomsensor.CO2)
		return got == value
	})
}

// TestFeedFollowers lets 8 writers, followers at two stores and failures take turns in a random order on a database: a
// writer begins, writes, commits, rolls back or loses its connection; the clock of the database falls behind; rows of
// the feed are purged. At the end the copies equal the table, and nothing was repeated without a change. Two naive
// followers of the same writers miss readings.
func TestFeedFollowers(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A5.3", "A5.10")
	missed := map[string]int{}
	for seed := range uint64(4) {
		for name := range followWriters(t, seed) {
			missed[name]++
		}
	}
	t.Logf("runs in which naive followers missed readings: %v", missed)
	require.Len(t, missed, 2)
}

// followWriters is a run of TestFeedFollowers. It returns the naive followers that missed readings.
func followWriters(t *testing.T, seed uint64) (missed map[string]bool) {
	t.Helper()
	f := setup(t)
	f.Exec(t, "CREATE TABLE numbered (number bigserial, device_id uuid, bucket_at timestamptz)")
	random := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	start := f.watermark(t)
	writers := f.feedWriters(t)
	other := open(t, f.URL, store.API)
	followers := []*follower{f.newFollower(start, f.Store), f.newFollower(start, f.Store, other)}
	naive := map[string]*naiveReader{
		"highest ingested_at": {
			sql: `SELECT device_id, bucket_at, co2_ppm, ingested_at::text FROM readings
				WHERE ingested_at > $1::text::timestamptz ORDER BY ingested_at`,
			last: "-infinity", copy: map[place]float32{},
		},
		"number taken at insert": {
			sql: `SELECT device_id, bucket_at, co2_ppm, number::text FROM numbered JOIN readings USING (device_id, bucket_at)
				WHERE number > $1::text::bigint ORDER BY number`,
			last: "0", copy: map[place]float32{},
		},
	}
	for range 200 {
		switch n := random.IntN(100); {
		case n < 62:
			w := writers[random.IntN(len(writers))]
			w.step(t, f, random)
		case n < 90:
			followers[random.IntN(len(followers))].page(t)
		case n < 97:
			for _, reader := range naive {
				reader.read(t, f.SQL)
			}
		case n < 98: // As after the promotion of a standby whose clock is behind.
			f.Exec(t, "SELECT setval('feed_reserved', feed_micros(clock_timestamp() + interval '200 ms'))")
			f.Exec(t, "UPDATE feed_server SET started_at = started_at - interval '1 day'")
		default:
			f.PurgeFeedAt(t, time.Now().Add(time.Hour))
		}
	}
	for _, w := range writers {
		if w.tx != nil {
			require.NoError(t, w.tx.Commit(t.Context()))
		}
	}
	table := f.table(t)
	require.NotEmpty(t, table)
	for i, follower := range followers {
		follower.catchUp(t)
		follower.requireCopy(t, table, "seed %d, follower %d", seed, i)
		require.Empty(t, follower.repeated, "seed %d, follower %d", seed, i)
	}
	missed = map[string]bool{}
	for name, reader := range naive {
		reader.read(t, f.SQL)
		if reader.missed(table) {
			missed[name] = true
		}
	}
	return missed
}

// feedWriters returns 6 workers and 2 other programs.
func (f *fixture) feedWriters(t *testing.T) (writers []*feedWriter) {
	t.Helper()
	f.makeChunks(t)
	for i := range 8 {
		conn := f.feedConn(t)
		w := &feedWriter{store: f.Store, conn: conn, worker: i < 6, device: f.NewDevice(t, fmt.Sprintf("dev:1%d", i))}
		if i == 7 {
			w.isolation = pgx.RepeatableRead
		}
		t.Cleanup(func() { require.NoError(t, w.conn.Close(context.Background())) })
		writers = append(writers, w)
	}
	return writers
}

// makeChunks creates the chunks of feedBuckets: a transaction that creates one makes those wait that create another one.
func (f *fixture) makeChunks(t *testing.T) {
	t.Helper()
	for _, bucket := range feedBuckets {
		f.WriteRows(t, co2(f.DeviceID, bucket, 1))
	}
}

// feedConn returns a connection. Nothing may wait for a lock, because the steps of all writers run in one goroutine.
func (f *fixture) feedConn(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), f.URL)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "SET lock_timeout = '5s'")
	require.NoError(t, err)
	return conn
}

// step takes the next step of a writer.
func (w *feedWriter) step(t *testing.T, f *fixture, random *rand.Rand) {
	t.Helper()
	switch n := random.IntN(10); {
	case w.tx == nil:
		w.begin(t)
	case n < 5:
		w.write(t, random)
		w.takeNumber(t)
	case n < 8:
		require.NoError(t, w.tx.Commit(t.Context()))
		w.tx = nil
	case n < 9:
		require.NoError(t, w.tx.Rollback(t.Context()))
		w.tx = nil
	default: // Its machine failed.
		f.Exec(t, "SELECT pg_terminate_backend($1, 5000)", w.conn.PgConn().PID())
		require.Error(t, w.tx.Commit(t.Context()))
		_ = w.conn.Close(t.Context())
		w.conn, w.tx = f.feedConn(t), nil
	}
}

// TestFeedLate checks that the transaction of another program that began long ago delays nobody and is not skipped,
// whatever its isolation level.
func TestFeedLate(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A5.4", "A5.9")
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		f := setup(t)
		start := f.watermark(t)
		f.makeChunks(t)
		follower := f.newFollower(start, f.Store)
		follower.catchUp(t)
		table := f.table(t)
		conn := f.feedConn(t)
		tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
		require.NoError(t, err)
		const insert = `INSERT INTO readings (device_id, bucket_at, co2_ppm) VALUES ($1, $2, 1)`
		other := f.NewDevice(t, "dev:2")
		_, err = tx.Exec(t.Context(), insert, other, feedBuckets[0])
		require.NoError(t, err)

		f.WriteRows(t, co2(f.DeviceID, feedBuckets[1], 2))
		follower.catchUp(t)
		require.Len(t, follower.copy, len(table))
		follower.requireCopy(t, f.table(t), "the open transaction delays no other one")

		_, err = tx.Exec(t.Context(), insert, other, feedBuckets[3])
		require.NoError(t, err)
		require.NoError(t, tx.Commit(t.Context()))
		require.NoError(t, conn.Close(t.Context()))
		follower.catchUp(t)
		follower.requireCopy(t, f.table(t), "%s", level)

		f.Exec(t, "UPDATE readings SET co2_ppm = co2_ppm + 1, ingested_at = now()")
		f.PurgeFeedAt(t, time.Now().Add(time.Hour))
		follower.catchUp(t)
		follower.requireCopy(t, f.table(t), "%s", level)
		require.Empty(t, follower.repeated)

		late := f.newFollower(start, f.Store) // One that began before all of it.
		late.catchUp(t)
		late.requireCopy(t, f.table(t), "%s", level)
	}
}

// TestFeedCatchUp checks that a follower that is far behind gets everything, in whichever way the places of its readings
// are found, in pages that end early.
func TestFeedCatchUp(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A5.8")
	f := setup(t)
	start := f.watermark(t)
	devices := []uuid.UUID{f.DeviceID, f.NewDevice(t, "dev:2"), f.NewDevice(t, "dev:3")}
	for i := range 40 {
		f.WriteRows(t, co2(devices[i%3], roomsensor.FormatTime(at("2026-09-01T00:00:00Z").Add(time.Duration(i)*29*time.Hour)), float32(i)))
	}
	slices.SortFunc(devices, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	f.WriteRows(t, co2(devices[0], feedBuckets[0], 1), co2(devices[1], feedBuckets[0], 1), co2(devices[2], feedBuckets[0], 1))
	table := f.table(t)
	require.Len(t, table, 43)
	for _, way := range []string{"batches", "days", "chunks"} {
		for _, candidates := range []int{1, 500, 20_000} {
			f.Feed.Limits = feed.Limits{Candidates: candidates}
			follower := f.newFollower(start, f.Store)
			if way == "chunks" {
				follower.round.From = start.Add(-time.Hour) // Before the tables of the feed existed.
			}
			follower.catchUp(t)
			follower.requireCopy(t, table, "%s, %d", way, candidates)
			require.Empty(t, follower.repeated, way)
		}
		if way == "batches" {
			f.PurgeFeedAt(t, time.Now().Add(time.Hour))
			require.Zero(t, f.Number(t, "SELECT count(*) FROM feed_batches"))
			require.NotZero(t, f.Number(t, "SELECT count(*) FROM feed_days"))
		}
	}
	f.PurgeFeedAt(t, time.Now().Add(roomsensor.FeedKeep+48*time.Hour))
	require.Zero(t, f.Number(t, "SELECT count(*) FROM feed_days"))
}

// TestFeedOfOtherTeams checks that the feed of a team does not read what another one wrote.
func TestFeedOfOtherTeams(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var other, device uuid.UUID
	require.NoError(t, f.SQL.QueryRow(t.Context(), `WITH team AS (INSERT INTO teams (name) VALUES ('Other') RETURNING id)
		INSERT INTO devices (team_id, hardware_id) SELECT id, 'dev:9' FROM team RETURNING team_id, id`).Scan(&other, &device))
	from := f.watermark(t)
	var wide []roomsensor.DeviceMeasurement
	for day := range 200 {
		wide = append(wide, co2(device, roomsensor.FormatTime(at("2025-01-01T00:00:00Z").AddDate(0, 0, 2*day)), 1))
	}
	f.WriteRows(t, wide...)
	f.WriteRows(t, co2(f.DeviceID, feedBuckets[0], 1))
	days := func(team uuid.UUID) int {
		list, err := db.New().FeedDayList(t.Context(), f.SQL, db.FeedDayListParams{
			TeamID: team, FromHour: from.Truncate(time.Hour), FromAt: from, ToAt: time.Now().Add(time.Hour),
		})
		require.NoError(t, err)
		return len(list)
	}
	for range 2 { // From feed_batches, then from feed_days.
		require.Equal(t, 1, days(f.TeamID))
		require.Equal(t, 200, days(other))
		f.PurgeFeedAt(t, time.Now().Add(time.Hour))
	}
	require.Zero(t, f.Number(t, "SELECT count(*) FROM feed_batches"))
}

// TestFeedChanges checks which requests the changes of a part of the feed wake.
func TestFeedChanges(t *testing.T) {
	t.Parallel()
	f := setup(t)
	second := f.NewDevice(t, "dev:2")
	mark := func() time.Time { return f.watermark(t) }
	changes := func(from time.Time) roomsensor.FeedChanges {
		changes, err := f.FeedChanges(t.Context(), []uuid.UUID{f.TeamID}, roomsensor.FeedRound{From: from, To: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		return changes
	}
	from := mark()
	require.False(t, changes(from).Any)
	require.Empty(t, changes(from).Devices)
	f.WriteRows(t, co2(second, "2026-02-01T00:00:00Z", 2))
	require.Equal(t, map[uuid.UUID][]uuid.UUID{f.TeamID: {second}}, changes(from).Devices)
	none, err := f.FeedChanges(t.Context(), []uuid.UUID{uuid.New()}, roomsensor.FeedRound{From: from, To: time.Now()})
	require.NoError(t, err)
	require.Empty(t, none.Devices, "of another team")
	f.WriteRows(t, co2(second, "2026-02-01T00:00:00Z", 2))
	require.Equal(t, 1, f.Number(t, "SELECT count(*) FROM feed_batches"), "a redelivery changes nothing")
	f.Exec(t, "INSERT INTO readings (device_id, bucket_at) VALUES ($1, '2026-01-01 00:00:00Z')", f.DeviceID)
	require.True(t, changes(from).Any, "another program wrote")
	f.PurgeFeedAt(t, time.Now().Add(time.Hour))
	require.True(t, changes(from).Any, "what changed is not known any more")
}

// TestForeignWrites checks which rows of foreign_writes the transactions of other programs leave, that each changes the
// number by which /devices/current notices them, and that a purge does not change it.
func TestForeignWrites(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.makeChunks(t)
	version := func() int64 {
		source, err := db.New().CurrentSourceGet(t.Context(), f.SQL)
		require.NoError(t, err)
		return source.Version
	}
	rows := func(condition string) int {
		t.Helper()
		return f.Number(t, "SELECT count(*) FROM foreign_writes WHERE "+condition)
	}
	first := version()

	tx, err := f.SQL.Begin(t.Context()) // It is late, because the watermark passes its time.
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `UPDATE readings SET lux = 1, ingested_at = now() WHERE bucket_at = $1`, feedBuckets[0])
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `UPDATE readings SET lux = 2, ingested_at = now() WHERE bucket_at IN ($1, $2)`, feedBuckets[0], feedBuckets[3])
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		var began time.Time
		require.NoError(t, tx.QueryRow(t.Context(), "SELECT now()").Scan(&began))
		return f.watermark(t).After(began)
	}, patience, 10*time.Millisecond)
	require.Equal(t, first, version(), "not committed")
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, 2, rows("effective_at > ingested_at"), "a row per chunk")
	second := version()
	require.NotEqual(t, first, second)
	conn := f.feedConn(t) // The statistics of a session can have what its last transactions wrote.
	_, err = conn.Exec(t.Context(), "DELETE FROM readings WHERE bucket_at = $1", feedBuckets[4])
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	require.Equal(t, 1, rows("range_start IS NULL"), "only deleted")
	third := version()
	require.NotEqual(t, second, third)

	f.Exec(t, "DELETE FROM feed_days")
	f.PurgeFeedAt(t, time.Now().Add(time.Hour))
	require.Equal(t, 2, rows("transaction IS NULL"), "the feed needs the times of late readings")
	require.NotZero(t, f.Number(t, "SELECT count(*) FROM feed_days WHERE day = '2026-10-01'"))
	require.Equal(t, third, version())
	f.PurgeFeedAt(t, time.Now().Add(roomsensor.FeedKeep+48*time.Hour))
	require.Zero(t, rows("true"))
	require.Equal(t, third, version())
}

// TestFeedTransactionTimeout checks that the transaction of a worker ends although its machine does not end it.
func TestFeedTransactionTimeout(t *testing.T) {
	t.Parallel()
	conformance.NeedsMachine(t, "PostgreSQL 17")
	f := setup(t)
	if f.Number(t, "SELECT current_setting('server_version_num')::int") < 170000 {
		t.Skip("PostgreSQL has transaction_timeout since version 17")
	}
	conn, err := pgx.Connect(t.Context(), f.URL)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{BeginQuery: "begin;" + db.FeedBegin})
	require.NoError(t, err)
	var limit string
	require.NoError(t, tx.QueryRow(t.Context(), "SHOW transaction_timeout").Scan(&limit))
	require.Equal(t, "45s", limit)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, conn.QueryRow(t.Context(), "SHOW transaction_timeout").Scan(&limit))
	require.Equal(t, "0", limit)
}

// TestFeedSpan checks that spans have the bounds of chunks.
func TestFeedSpan(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, "INSERT INTO readings (device_id, bucket_at) SELECT $1, b FROM unnest($2::text[]::timestamptz[]) b", f.DeviceID,
		append(slices.Clone(feedBuckets), "2000-01-01 00:00:00Z", "1960-02-03 00:05:00Z"))
	rows, err := f.SQL.Query(t.Context(), `SELECT r.bucket_at, c.range_start, c.range_end FROM readings r
		JOIN timescaledb_information.chunks c ON r.bucket_at >= c.range_start AND r.bucket_at < c.range_end
		WHERE c.hypertable_name = 'readings'`)
	require.NoError(t, err)
	count := 0
	for rows.Next() {
		var bucket, from, to time.Time
		require.NoError(t, rows.Scan(&bucket, &from, &to))
		require.Equal(t, roomsensor.Window{From: from.UTC(), To: to.UTC()}, roomsensor.FeedSpan(bucket))
		count++
	}
	require.Equal(t, len(feedBuckets)+2, count)
}

// TestFeedClockStepsBack writes while the clock of the database is hours ahead, with a worker and with SQL, and after it
// stepped back. Everything appears at once, and once.
func TestFeedClockStepsBack(t *testing.T) {
	t.Parallel()
	f := setup(t)
	start := f.watermark(t)
	conn := f.feedConn(t)
	// The functions that look up now() by the search path of the session see another clock.
	for _, sql := range []string{
		`CREATE SCHEMA ahead`,
		`CREATE FUNCTION ahead.now() RETURNS timestamptz STABLE LANGUAGE sql AS $$SELECT pg_catalog.now() + interval '6 hours'$$`,
		`SET search_path = ahead, pg_catalog, public`, `SET roomsensor.worker = 'on'`,
		`BEGIN`, `SELECT feed_begin()`,
		fmt.Sprintf(`INSERT INTO readings (device_id, bucket_at, co2_ppm, ingested_at)
			VALUES ('%s', '%s', 1, current_setting('roomsensor.ingested_at')::timestamptz)`, f.DeviceID, feedBuckets[0]),
		fmt.Sprintf(`INSERT INTO feed_batches (team_id, effective_at, devices, device_ids, first_at, last_at)
			VALUES ('%s', current_setting('roomsensor.ingested_at')::timestamptz, 1, '{%s}', '{%s}', '{%[3]s}')`,
			f.TeamID, f.DeviceID, feedBuckets[0]),
		`COMMIT`,
	} {
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
	require.NoError(t, conn.Close(t.Context()))
	follower := f.newFollower(start, f.Store)
	follower.catchUp(t)
	require.Len(t, follower.copy, 1)
	for i, bucket := range feedBuckets[:3] {
		f.WriteRows(t, co2(f.DeviceID, bucket, float32(i+10)))
		follower.catchUp(t)
		follower.requireCopy(t, f.table(t), "worker, %d", i)
	}
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm) VALUES ($1, $2, 5)`, f.DeviceID, feedBuckets[3])
	follower.catchUp(t)
	follower.requireCopy(t, f.table(t), "SQL")
	require.Empty(t, follower.repeated)
}
