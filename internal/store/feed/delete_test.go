package feed_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
)

// window returns a window of buckets.
func window(from, to string) roomsensor.Window { return roomsensor.Window{From: at(from), To: at(to)} }

// deleteReadings deletes readings of a device and returns their number.
func (f *fixture) deleteReadings(t *testing.T, device uuid.UUID, w roomsensor.Window) roomsensor.ReadingRange {
	t.Helper()
	deleted, err := f.DeleteReadings(t.Context(), device, w, "The sensor was wet.")
	require.NoError(t, err)
	return deleted
}

// buckets lists the buckets of a device.
func (f *fixture) buckets(t *testing.T, device uuid.UUID) (buckets []string) {
	t.Helper()
	for _, r := range f.ReadAll(t, device) {
		buckets = append(buckets, roomsensor.FormatTime(r.BucketAt))
	}
	slices.Sort(buckets)
	return buckets
}

func TestDeleteReadings(t *testing.T) {
	t.Parallel()
	f := setup(t)
	other := f.NewDevice(t, "dev:2")
	all := []string{"2026-03-04T23:55:00Z", "2026-03-05T00:00:00Z", "2026-03-05T12:00:00Z", "2026-03-06T00:00:00Z"}
	for _, bucket := range all {
		f.WriteRows(t, co2(f.DeviceID, bucket, 500), co2(other, bucket, 500))
	}
	f.Exec(t, `INSERT INTO samples (device_id, measured_at) SELECT $1, unnest($2::text[])::timestamptz + interval '1 minute'`,
		f.DeviceID, all)
	f.Exec(t, `UPDATE device_state SET last_seen_at = '2026-03-06 00:01:00Z'`)
	day := window("2026-03-05T00:00:00Z", "2026-03-06T00:00:00Z")
	want := roomsensor.ReadingRange{Readings: 2, Samples: 2, First: at(all[1]), Last: at(all[2])}
	counted, err := f.CountReadings(t.Context(), f.DeviceID, day)
	require.NoError(t, err)
	require.Equal(t, want, counted)

	deleted := f.deleteReadings(t, f.DeviceID, day)
	require.Equal(t, roomsensor.ReadingRange{Readings: 2, Samples: 2}, deleted)
	require.Equal(t, []string{all[0], all[3]}, f.buckets(t, f.DeviceID), "the first bucket goes, the last one stays")
	require.Equal(t, all, f.buckets(t, other))
	require.Equal(t, 2, f.Number(t, `SELECT count(*) FROM samples`))
	require.Equal(t, 2, f.Number(t, `SELECT count(*) FROM device_state WHERE last_seen_at = '2026-03-06 00:01:00Z'`))
	require.Zero(t, f.Number(t, `SELECT count(*) FROM foreign_writes`), "the deletion concerns no other device")

	require.Zero(t, f.deleteReadings(t, f.DeviceID, day), "the second time deletes nothing, and records nothing")
	require.Equal(t, 1, f.Number(t, `SELECT count(*) FROM reading_deletions`))
	_, err = f.DeleteReadings(t.Context(), uuid.New(), day, "x")
	require.NoError(t, err, "a device that was deleted has no readings")
}

// TestDeleteReadingsAudit checks that the audit log has the actor, the reason and the numbers, and one entry per
// transaction.
func TestDeleteReadingsAudit(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Fill(t, 1000, f.DeviceID)
	ctx := roomsensor.WithActor(t.Context(), roomsensor.Actor{Kind: roomsensor.ActorOperator, Name: "ann"})
	_, err := f.DeleteReadings(ctx, f.DeviceID, window("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"), "Wet sensor")
	require.NoError(t, err)
	entries, err := f.TeamAudit(t.Context(), f.TeamID, roomsensor.AuditQuery{Limit: 100})
	require.NoError(t, err)
	entries = slices.DeleteFunc(entries, func(e roomsensor.AuditEntry) bool { return e.ObjectKind != "readings" })
	require.Len(t, entries, 1)
	e := entries[0]
	require.Equal(t, roomsensor.AuditDelete, e.Action)
	require.Equal(t, "ann", e.Actor.Name)
	require.Equal(t, "Wet sensor", e.Reason)
	require.Equal(t, f.DeviceID, *e.DeviceID)
	require.Equal(t, "dev:1", e.ObjectName)
	require.Empty(t, e.After)
	require.JSONEq(t, `{"deleted_from": "2026-01-02T00:00:00Z", "deleted_to": "2026-01-03T00:00:00Z",
		"readings": 288, "samples": 0}`, string(e.Before))
}

// TestDeleteReadingsParts deletes a long window in several transactions, over a gap, and continues after a failure.
func TestDeleteReadingsParts(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm)
		SELECT $1, at, 400 FROM generate_series(TIMESTAMPTZ '2024-01-01Z', '2024-04-09Z', INTERVAL '6 hours') at`, f.DeviceID)
	f.WriteRows(t, co2(f.DeviceID, "2025-04-10T00:00:00Z", 500), co2(f.DeviceID, "2025-06-01T00:00:00Z", 500))
	// The second transaction fails.
	f.Exec(t, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
		$$BEGIN IF (SELECT count(*) FROM reading_deletions) > 1 THEN RAISE EXCEPTION 'disk full'; END IF; RETURN NULL; END$$`)
	f.Exec(t, `CREATE TRIGGER fail AFTER INSERT ON reading_deletions FOR EACH ROW EXECUTE FUNCTION fail()`)
	long := window("2024-01-01T00:00:00Z", "2025-06-01T00:00:00Z")
	deleted, err := f.DeleteReadings(t.Context(), f.DeviceID, long, "x")
	require.ErrorContains(t, err, "disk full")
	require.EqualValues(t, 35*4, deleted.Readings)
	require.Equal(t, 99*4+1-35*4+2, f.Number(t, `SELECT count(*) FROM readings`))

	f.Exec(t, `DROP TRIGGER fail ON reading_deletions`)
	require.EqualValues(t, 99*4+1-35*4+1, f.deleteReadings(t, f.DeviceID, long).Readings)
	require.Equal(t, []string{"2025-06-01T00:00:00Z"}, f.buckets(t, f.DeviceID))
	require.Equal(t, 4, f.Number(t, `SELECT count(*) FROM reading_deletions`))
}

// TestDeleteReadingsColumnstore deletes from a chunk in the columnstore, and reads the hours of the aggregate.
func TestDeleteReadingsColumnstore(t *testing.T) {
	t.Parallel()
	dbtest.NeedCommunity(t)
	f := setup(t)
	other := f.NewDevice(t, "dev:2")
	f.Fill(t, 2000, f.DeviceID, other)
	job := f.Number(t, "SELECT job_id FROM timescaledb_information.jobs WHERE proc_name = 'policy_refresh_continuous_aggregate'")
	_, err := f.SQL.Exec(t.Context(), "CALL run_job($1)", pgx.QueryExecModeSimpleProtocol, job)
	require.NoError(t, err)
	f.Exec(t, "SELECT compress_chunk(c) FROM show_chunks('readings') c")
	require.EqualValues(t, 288, f.deleteReadings(t, f.DeviceID, window("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z")).Readings)
	require.Equal(t, 2000-288, f.Number(t, `SELECT count(*) FROM readings WHERE device_id = '`+f.DeviceID.String()+`'`))
	require.Equal(t, 2000, f.Number(t, `SELECT count(*) FROM readings WHERE device_id = '`+other.String()+`'`))
	require.Zero(t, f.Number(t, `SELECT count(*) FROM readings_hourly_valid('2026-01-02Z', '2026-01-03Z')`),
		"the hours come from the readings until they are computed again")
}

// writerAt begins a transaction of a worker, and returns its time in the feed.
func (f *fixture) writerAt(t *testing.T, conn *pgx.Conn) (tx pgx.Tx, ingestedAt time.Time) {
	t.Helper()
	tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{BeginQuery: "begin;" + db.WorkerSet + ";" + db.FeedBegin})
	require.NoError(t, err)
	require.NoError(t, tx.QueryRow(t.Context(), "SELECT current_setting('roomsensor.ingested_at')::timestamptz").Scan(&ingestedAt))
	return tx, ingestedAt
}

// TestDeleteReadingsDuringWrite checks that a deletion waits for the workers that have an earlier time in the feed, and
// deletes what they store. What a worker with a later time stores stays, whenever it began.
func TestDeleteReadingsDuringWrite(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A5.12")
	f := setup(t)
	start := f.watermark(t)
	f.makeChunks(t)
	bucket := feedBuckets[0]
	follower := f.newFollower(start, f.Store)
	follower.deletions = 10
	follower.catchUp(t)
	row := func(value float32) roomsensor.Batch {
		return roomsensor.Batch{Rows: []roomsensor.DeviceMeasurement{co2(f.DeviceID, bucket, value)}}
	}
	early, earlyAt := f.writerAt(t, f.feedConn(t))
	database := dbtest.DB{URL: f.URL}
	deleting := open(t, database.With("default_transaction_isolation", "repeatable read"), store.Operator)
	done := make(chan error, 1)
	go func() {
		_, err := deleting.DeleteReadings(context.WithoutCancel(t.Context()), f.DeviceID,
			window("2026-11-20T10:00:00Z", "2026-11-20T10:05:00Z"), "x")
		done <- err
	}()
	var locked time.Time // the time of the deletion, which waits for the worker
	require.Eventually(t, func() bool {
		locked = time.UnixMicro(int64(f.Number(t, `SELECT max(((classid::bigint & 4095) << 32 | objid::bigint) * 1000)
			FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND classid::bigint >> 12 = feed_key(0) >> 44
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)))
		return locked.After(earlyAt)
	}, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { // The deletion moves feed_reserved, as clients of the feed do.
		return f.Number(t, "SELECT pg_sequence_last_value('feed_reserved')") >= int(locked.UnixMicro())
	}, patience, 10*time.Millisecond)
	late, lateAt := f.writerAt(t, f.feedConn(t))
	require.Greater(t, lateAt, locked)
	_, err := f.WriteIn(t.Context(), early, row(1000))
	require.NoError(t, err)
	select {
	case err := <-done:
		require.Fail(t, "the deletion did not wait", err)
	default:
	}
	require.NoError(t, early.Commit(t.Context()))
	require.NoError(t, <-done)
	require.NotContains(t, f.buckets(t, f.DeviceID), bucket)

	_, err = f.WriteIn(t.Context(), late, row(2000))
	require.NoError(t, err)
	require.NoError(t, late.Commit(t.Context()))
	follower.catchUp(t)
	require.Len(t, follower.deleted, 1)
	require.Equal(t, locked.UTC(), follower.deleted[0].DeletedAt)
	table := f.table(t)
	stored := table[place{f.DeviceID, at(bucket)}]
	value, _ := stored.Values.Get(roomsensor.CO2)
	require.InDelta(t, 2000, value, 0, "it is stored again")
	follower.requireCopy(t, table, "after")
}

// TestFeedDeletions lets workers write a device, an operator delete ranges of it, and followers read pages, all at the
// same time. At the end the copies equal the table. It takes 3 seconds, because each deletion waits for writers.
func TestFeedDeletions(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A5.12")
	f := setup(t)
	start := f.watermark(t)
	f.makeChunks(t)
	const seed = 1
	group, ctx := errgroup.WithContext(t.Context())
	ends, end := context.WithCancel(ctx)
	for i := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, i))
		group.Go(func() error {
			for ends.Err() == nil {
				row := co2(f.DeviceID, feedBuckets[random.IntN(len(feedBuckets))], float32(random.IntN(1000)))
				row.MeasuredAt = row.MeasuredAt.Add(time.Duration(random.IntN(300)) * time.Second)
				if _, err := f.WriteBatch(ctx, roomsensor.Batch{Rows: []roomsensor.DeviceMeasurement{row}}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	deleting := open(t, f.URL, store.Operator)
	random := rand.New(rand.NewPCG(seed, 100))
	group.Go(func() error {
		defer end()
		for range 10 {
			first := at(feedBuckets[random.IntN(len(feedBuckets))])
			w := roomsensor.Window{From: first, To: first.Add(time.Duration(1+random.IntN(2)) * roomsensor.BucketLength)}
			if _, err := deleting.DeleteReadings(ctx, f.DeviceID, w, "x"); err != nil {
				return err
			}
		}
		return nil
	})
	followers := []*follower{f.newFollower(start, f.Store), f.newFollower(start, open(t, f.URL, store.API), f.Store)}
	for i, follower := range followers {
		follower.limit, follower.deletions = 1+i, 1+i
	}
	for ends.Err() == nil {
		for _, follower := range followers {
			follower.page(t)
		}
	}
	require.NoError(t, group.Wait())
	require.NotZero(t, f.Number(t, "SELECT count(*) FROM reading_deletions"))
	for _, follower := range followers {
		follower.catchUp(t)
		follower.requireCopy(t, f.table(t), "seed %d", seed)
		require.Empty(t, follower.repeated)
		require.NotEmpty(t, follower.deleted)
	}
}

// TestFeedDeletionPages checks that deletions come at the start of a round, once, at most a number per page, and only
// those that the filters select.
func TestFeedDeletionPages(t *testing.T) {
	t.Parallel()
	f := setup(t)
	start := f.watermark(t)
	other := f.NewDevice(t, "dev:2")
	f.Exec(t, `UPDATE devices SET metadata = '{"floor": "1"}' WHERE id = $1`, other)
	f.Exec(t, `INSERT INTO assignments (device_id, type, label, external_ref, started_at, ended_at)
		VALUES ($1, 'athlete', 'A', 'a-1', '2026-03-01Z', '2026-03-03Z')`, other)
	strange, err := f.CreateTeam(t.Context(), "Other")
	require.NoError(t, err)
	for i, device := range []uuid.UUID{f.DeviceID, other, f.DeviceID, other, other} {
		day := at("2026-03-01T00:00:00Z").AddDate(0, 0, i)
		f.WriteRows(t, co2(device, roomsensor.FormatTime(day), 500))
		f.deleteReadings(t, device, roomsensor.Window{From: day, To: day.AddDate(0, 0, 1)})
	}
	var mark time.Time // after the deletions
	require.Eventually(t, func() bool {
		mark = f.watermark(t)
		return f.Number(t, `SELECT count(*) FROM reading_deletions
			WHERE effective_at >= '`+mark.Format(time.RFC3339Nano)+`'`) == 0
	}, patience, 10*time.Millisecond)
	read := func(team uuid.UUID, q roomsensor.FeedQuery) (days []int, progress roomsensor.FeedProgress) {
		t.Helper()
		if q.Round.To.IsZero() {
			q.Round = roomsensor.FeedRound{From: start, To: mark}
		}
		q.Most = 10
		progress, err := f.EachChange(t.Context(), team, q, func(*roomsensor.Change) bool { return true })
		require.NoError(t, err)
		for _, d := range progress.Deleted {
			require.Equal(t, 24*time.Hour, d.To.Sub(d.From))
			days = append(days, d.From.Day())
		}
		return days, progress
	}
	days, progress := read(f.TeamID, roomsensor.FeedQuery{Deletions: 5})
	require.Equal(t, []int{1, 2, 3, 4, 5}, days)
	require.Zero(t, progress.Until)
	days, _ = read(f.TeamID, roomsensor.FeedQuery{})
	require.Empty(t, days, "the client did not ask for them")
	days, _ = read(strange.ID, roomsensor.FeedQuery{Deletions: 5})
	require.Empty(t, days, "another team")
	days, _ = read(f.TeamID, roomsensor.FeedQuery{Deletions: 5, After: &roomsensor.FeedPosition{DeviceID: f.DeviceID}})
	require.Empty(t, days, "only at the start")
	days, _ = read(f.TeamID, roomsensor.FeedQuery{Deletions: 5, Devices: []uuid.UUID{other}})
	require.Equal(t, []int{2, 4, 5}, days)
	days, _ = read(f.TeamID, roomsensor.FeedQuery{Deletions: 5, Metadata: map[string]string{"floor": "1"}})
	require.Equal(t, []int{2, 4, 5}, days)
	days, _ = read(f.TeamID, roomsensor.FeedQuery{Deletions: 5, ExternalRef: new("a-1")})
	require.Equal(t, []int{2}, days, "a window of an assignment overlaps")

	days, progress = read(f.TeamID, roomsensor.FeedQuery{Deletions: 2})
	require.Equal(t, []int{1, 2}, days)
	days, progress = read(f.TeamID, roomsensor.FeedQuery{Deletions: 3, Round: roomsensor.FeedRound{From: progress.Until, To: mark}})
	require.Equal(t, []int{3, 4, 5}, days, "the next round begins with the third one")
	require.Zero(t, progress.Until)

	f.Exec(t, "DELETE FROM feed_batches")
	changes, err := f.FeedChanges(t.Context(), []uuid.UUID{f.TeamID, strange.ID}, roomsensor.FeedRound{From: start, To: mark})
	require.NoError(t, err)
	require.Contains(t, changes.Devices[f.TeamID], other, "they wake requests that wait")
	require.Empty(t, changes.Devices[strange.ID])

	f.PurgeFeedAt(t, time.Now().Add(roomsensor.FeedKeep))
	require.Equal(t, 5, f.Number(t, "SELECT count(*) FROM reading_deletions"))
	f.PurgeFeedAt(t, time.Now().Add(roomsensor.FeedKeep+2*time.Hour))
	require.Zero(t, f.Number(t, "SELECT count(*) FROM reading_deletions"))
}

// TestDeleteReadingsMost checks that a team has a limited number of deletions.
func TestDeleteReadingsMost(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Fill(t, 1, f.DeviceID)
	f.Exec(t, `INSERT INTO reading_deletions SELECT $1, timestamptz '2026-01-01Z' + n * interval '1 second', $2,
		'2026-01-01Z', '2026-01-02Z', 1, 0 FROM generate_series(1, $3) n`, f.TeamID, f.DeviceID, roomsensor.MaxDeletions)
	_, err := f.DeleteReadings(t.Context(), f.DeviceID, window("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"), "x")
	require.ErrorIs(t, err, roomsensor.ErrTooManyDeletions)
	require.Equal(t, 1, f.Number(t, "SELECT count(*) FROM readings"))
}
