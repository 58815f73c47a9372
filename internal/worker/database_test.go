package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
)

// database is a real database with a fixture.
type database struct {
	*store.Store
	*fixture
	sql   *pgxpool.Pool
	units int // units of all fixtures
}

func newDatabase(t testing.TB) *database {
	t.Helper()
	url := dbtest.New(t).URL
	s, err := store.Open(t.Context(), url, store.Ingest)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	db := &database{Store: s, sql: pool}
	db.insertFixture(t)
	return db
}

// writer returns a writer to the database.
func (db *database) writer() *writer { return newWriter(db.Store) }

// insertFixture replaces the fixture by another one, with its own devices and units.
func (db *database) insertFixture(t require.TestingT) {
	ctx := context.Background()
	var teams [2]uuid.UUID
	for i := range teams {
		require.NoError(t, db.sql.QueryRow(ctx, "INSERT INTO teams (name) VALUES ('t') RETURNING id").Scan(&teams[i]))
	}
	var units [3]string
	for i := range units {
		db.units++
		units[i] = fmt.Sprint("dev:", db.units)
	}
	var devices [3]uuid.UUID
	for i, team := range [3]uuid.UUID{teams[0], teams[0], teams[1]} {
		require.NoError(t, db.sql.QueryRow(ctx,
			"INSERT INTO devices (team_id, hardware_id) VALUES ($1, $2) RETURNING id", team, units[0]).Scan(&devices[i]))
	}
	db.fixture = newFixture(teams[0], teams[1], devices[0], devices[1], devices[2], units)
	db.sequence = uint64(1000 * db.units)
	for _, installations := range db.installations {
		for _, i := range installations {
			_, err := db.sql.Exec(ctx, "INSERT INTO device_hardware VALUES ($1, $2, $3, $4)", i.HardwareID, i.DeviceID, i.From, i.To)
			require.NoError(t, err)
		}
	}
}

// query calls scan for every row.
func (db *database) query(t require.TestingT, scan func(row func(dest ...any)), sql string, args ...any) {
	rows, err := db.sql.Query(context.Background(), sql, args...)
	require.NoError(t, err)
	for rows.Next() {
		scan(func(dest ...any) { require.NoError(t, rows.Scan(dest...)) })
	}
	require.NoError(t, rows.Err())
}

// snapshot reads the content that belongs to the fixture.
func (db *database) snapshot(t require.TestingT) *content {
	got := newContent()
	db.query(t, func(scan func(...any)) {
		var device uuid.UUID
		var bucket time.Time
		var m roomsensor.Measurement
		var values [roomsensor.MetricCount]*float32
		scan(&device, &bucket, &m.MeasuredAt, &values[0], &values[1], &values[2], &values[3], &values[4])
		m.MeasuredAt = m.MeasuredAt.UTC()
		for i, x := range values {
			if x != nil {
				m.Values.Set(roomsensor.Metrics[i], *x)
			}
		}
		require.True(t, bucket.Equal(m.Bucket()))
		got.rows[rowKey(device, bucket)] = m
	}, `SELECT device_id, bucket_at, measured_at, co2_ppm, temp_c, humidity_pct, lux, spl_db
		FROM readings WHERE device_id IN ($1, $2, $3)`, db.a, db.b, db.c)
	db.query(t, func(scan func(...any)) {
		var h roomsensor.DeviceHeartbeat
		var signal roomsensor.Signal
		var signalAt, firmwareAt *time.Time
		scan(&h.DeviceID, &h.LastSeenAt, &signal.RSSI, &signal.Bars, &signalAt, &h.Firmware, &firmwareAt)
		h.LastSeenAt = h.LastSeenAt.UTC()
		if signalAt != nil {
			h.Signal, h.SignalAt = &signal, signalAt.UTC()
		}
		if firmwareAt != nil {
			h.FirmwareAt = firmwareAt.UTC()
		}
		got.heartbeats[h.DeviceID.String()] = h
	}, `SELECT device_id, last_seen_at, rssi_dbm, signal_bars, signal_at, firmware_version, firmware_at
		FROM device_state WHERE device_id IN ($1, $2, $3) AND last_seen_at IS NOT NULL`, db.a, db.b, db.c)
	db.query(t, func(scan func(...any)) {
		var sequence int64
		var reason string
		var payload []byte
		scan(&sequence, &reason, &payload)
		key := rejectKey(uint64(sequence), roomsensor.Reason(reason))
		require.NotContains(t, got.rejects, key)
		got.rejects[key] = string(payload)
	}, "SELECT stream_sequence, reason, payload FROM rejected_uploads WHERE hardware_id IN ($1, $2, $3)", db.first, db.second, db.unknown)
	return got
}

// versions returns the write time and the row version of every reading. A write that changes nothing keeps them.
func (db *database) versions(t require.TestingT) (list []string) {
	return db.texts(t, "SELECT (device_id, bucket_at, ingested_at)::text || xmin::text FROM readings ORDER BY device_id, bucket_at")
}

func (db *database) texts(t require.TestingT, sql string) (list []string) {
	db.query(t, func(scan func(...any)) {
		var text string
		scan(&text)
		list = append(list, text)
	}, sql)
	return list
}

func (db *database) count(t require.TestingT, from string) (n int) {
	require.NoError(t, db.sql.QueryRow(context.Background(), "SELECT count(*) FROM "+from).Scan(&n))
	return n
}

// scenario is uploads and the batches in which they are delivered, twice.
type scenario struct {
	uploads       []*sent
	first, second [][]*delivery
}

// Batches that several workers write to the real database at the same time give what the model expects, and the same
// uploads again change no row and no ingested_at (decisions 37 to 41).
func TestWriteToDatabase(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	for seed := range 30 {
		db.insertFixture(t)
		s := rapid.Custom(func(rt *rapid.T) scenario {
			uploads := db.uploads(rt)
			return scenario{uploads, drawBatches(rt, uploads), drawBatches(rt, uploads)}
		}).Example(seed)
		db.writeAtOnce(t, s.first)
		require.Equal(t, db.expect(s.uploads), db.snapshot(t), "seed %d", seed)

		before := db.versions(t)
		db.writeAtOnce(t, s.second)
		require.Equal(t, before, db.versions(t), "seed %d", seed)
		require.Equal(t, db.expect(s.uploads), db.snapshot(t), "seed %d", seed)
	}
}

func (db *database) writeAtOnce(t *testing.T, batches [][]*delivery) {
	t.Helper()
	var group errgroup.Group
	for _, batch := range batches {
		group.Go(func() error {
			_, err := db.writer().write(t.Context(), batch)
			return err
		})
	}
	require.NoError(t, group.Wait())
}

func TestWriteToDatabaseFailures(t *testing.T) {
	t.Parallel()

	t.Run("a reading that the database refuses becomes a reject of its own", func(t *testing.T) {
		t.Parallel()
		db := newDatabase(t)
		_, err := db.sql.Exec(t.Context(), "ALTER TABLE readings ADD CONSTRAINT unlucky CHECK (lux <> 13)")
		require.NoError(t, err)
		var batch []*delivery
		for i := range 20 {
			readings := []string{readingAt(clock(10, 5*i, 0), `"lux":7`)}
			if i%9 == 4 {
				readings = append(readings, readingAt(clock(18, 5*i, 0), `"lux":13`), readingAt(clock(19, 5*i, 0), `"lux":8`))
			}
			batch = append(batch, deliveryOf(db.second, uint64(i+1), readings...))
		}
		writeAll(t, db.writer(), [][]*delivery{batch})
		got := db.snapshot(t)
		require.Len(t, got.rows, 22)
		require.Equal(t, map[string]string{
			"5 not_storable":  string(messageOf(db.second, readingAt(clock(18, 20, 0), `"lux":13`)).Text),
			"14 not_storable": string(messageOf(db.second, readingAt(clock(18, 65, 0), `"lux":13`)).Text),
		}, got.rejects)
		list, err := db.Rejects(t.Context(), roomsensor.RejectQuery{Limit: 2})
		require.NoError(t, err)
		require.Contains(t, list[0].Detail, `(SQLSTATE 23514, constraint "unlucky")`)
	})

	t.Run("a batch that is too much or too slow is never a reject", func(t *testing.T) {
		t.Parallel()
		db := newDatabase(t)
		upload := func() *delivery {
			return deliveryOf(db.second, 1, readingAt(clock(10, 0, 0), ""), readingAt(clock(10, 5, 0), ""))
		}
		for _, state := range []string{"53400", "57014", "40001", "55P03"} {
			db.refuse(t, state, uuid.Nil)
			results, err := db.writer().write(t.Context(), []*delivery{upload()})
			require.Error(t, err, state)
			require.Equal(t, []bool{false}, stored(results))
			require.Empty(t, db.snapshot(t).rejects)
		}
		db.accept(t)
		writeAll(t, db.writer(), [][]*delivery{{upload()}})
		require.Len(t, db.snapshot(t).rows, 2)
	})

	t.Run("an upload that the database refuses with any SQLSTATE is stored without the others, or parked", func(t *testing.T) {
		t.Parallel()
		db := newDatabase(t)
		for i, state := range []string{"P0001", "XX000", "53200", "0A000", "55000", "54000", "58030", "55P03"} {
			db.refuse(t, state, db.c)
			var batch []*delivery
			for n := range 5 {
				d := deliveryOf(db.second, uint64(100*i+n), readingAt(clock(10+i, 5*n, 0), ""))
				if n == 2 {
					d = deliveryOf(db.first, uint64(100*i+n), readingAt(clock(10+i, 0, 0), ""))
				}
				d.deliveries = DefaultParkAfter + 1
				batch = append(batch, d)
			}
			w := db.writer()
			writeAll(t, w, [][]*delivery{{deliveryOf(db.second, uint64(100*i+50), readingAt(clock(10+i, 30, 0), ""))}, batch})
			require.Len(t, db.snapshot(t).rows, 6*i+5, state)

			var id uuid.UUID
			var detail string
			require.NoError(t, db.sql.QueryRow(t.Context(), "SELECT id, detail FROM rejected_uploads WHERE stream_sequence = $1",
				100*i+2).Scan(&id, &detail))
			require.Contains(t, detail, "at delivery 51 (SQLSTATE "+state+")")
			reject, err := db.Reject(t.Context(), id)
			require.NoError(t, err)
			if state == "P0001" {
				rest, err := Replay(t.Context(), db, reject)
				require.NoError(t, err)
				require.NotEmpty(t, rest, "the cause still applies")
			}
			db.accept(t)
			rest, err := Replay(t.Context(), db, reject)
			require.NoError(t, err)
			require.Empty(t, rest)
			require.Len(t, db.snapshot(t).rows, 6*i+6, state)
		}
	})
}

// The detail of a reject has a bounded and printable name of the constraint.
func TestRejectNamesConstraint(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	_, err := db.sql.Exec(t.Context(), `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			RAISE EXCEPTION 'refused' USING ERRCODE = '23514', CONSTRAINT = E'a\n' || repeat('é', 1000);
		END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON readings FOR EACH ROW EXECUTE FUNCTION refuse()`)
	require.NoError(t, err)
	writeAll(t, db.writer(), [][]*delivery{{deliveryOf(db.second, 1, readingAt(clock(10, 0, 0), ""))}})
	list, err := db.Rejects(t.Context(), roomsensor.RejectQuery{Limit: 1})
	require.NoError(t, err)
	require.Contains(t, list[0].Detail, `(SQLSTATE 23514, constraint "a\n`+strings.Repeat("é", 30)+`\xc3")`)
}

// lateSwap records a swap when a worker has read the installations, and has not written yet.
type lateSwap struct {
	*store.Store
	record func()
}

func (s lateSwap) Installations(ctx context.Context, ids []string) (map[string][]roomsensor.Installation, error) {
	units, err := s.Store.Installations(ctx, ids)
	s.record()
	return units, err
}

// A swap that is recorded for a past time while a worker writes loses no reading. What is stored again goes to the new
// device as well, and the statement on the page for operators deletes the copies in the old one.
func TestWriteDuringSwap(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	at := clock(9, 0, 0)
	batch := []*delivery{deliveryOf(db.second, 1, readingAt(clock(8, 30, 0), `"lux":1`), readingAt(clock(9, 30, 0), `"lux":2`))}
	w := db.writer()
	w.tables = lateSwap{db.Store, func() {
		_, err := db.RemoveHardware(t.Context(), db.ours, db.a, at)
		require.NoError(t, err)
		_, err = db.ReplaceHardware(t.Context(), db.ours, db.b, db.second, at)
		require.NoError(t, err)
	}}
	writeAll(t, w, [][]*delivery{batch})
	before, during := rowKey(db.a, clock(8, 30, 0)), rowKey(db.a, clock(9, 30, 0))
	require.ElementsMatch(t, []string{before, during}, slices.Collect(maps.Keys(db.snapshot(t).rows)))

	// A redelivery, and a measurement of the next unit at the same time as one of the moved unit.
	later := deliveryOf(db.second, 2, readingAt(clock(9, 35, 0), `"lux":3`))
	writeAll(t, db.writer(), [][]*delivery{batch, {later}})
	_, err := db.sql.Exec(t.Context(), "INSERT INTO readings (device_id, bucket_at, measured_at, lux) VALUES ($1, $2, $2, 4)",
		db.a, clock(9, 35, 0))
	require.NoError(t, err)
	moved, next := rowKey(db.b, clock(9, 30, 0)), rowKey(db.b, clock(9, 35, 0))
	kept := []string{before, rowKey(db.a, clock(9, 35, 0)), moved, next}
	require.ElementsMatch(t, append([]string{during}, kept...), slices.Collect(maps.Keys(db.snapshot(t).rows)))

	_, statement, found := strings.Cut(guide(t, "reliability.md"), "```sql\n")
	require.True(t, found)
	statement, _, _ = strings.Cut(statement, "```")
	_, err = db.sql.Exec(t.Context(), strings.NewReplacer("OLD_DEVICE_ID", db.a.String(), "NEW_DEVICE_ID", db.b.String(),
		"TIME_OF_SWAP", roomsensor.FormatTime(at)).Replace(statement))
	require.NoError(t, err)
	require.ElementsMatch(t, kept, slices.Collect(maps.Keys(db.snapshot(t).rows)))
}

const week = 7 * 24 * time.Hour

// weekly returns an upload of a unit without a team, with a reading in each of some weeks.
func weekly(unit string, sequence uint64, from time.Time, weeks int, more ...string) *delivery {
	readings := more
	for i := range weeks {
		readings = append(readings, readingAt(from.Add(time.Duration(i)*week), `"lux":1`))
	}
	return deliveryOf(unit, sequence, readings...)
}

// An upload may create 60 chunks (decision 53 c).
func TestWriteManyChunks(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 53 c 1", "decision 53 c 2", "decision 53 c 4")
	db := newDatabase(t)
	writeAll(t, db.writer(), [][]*delivery{
		{weekly(db.second, 1, roomsensor.MeasuredFrom, 60), weekly(db.second, 2, roomsensor.MeasuredFrom.Add(60*week), 60)},
		{weekly(db.second, 3, roomsensor.MeasuredFrom, 180)},
	})
	require.Equal(t, 180, db.count(t, "readings"))
	got := db.snapshot(t)
	require.Empty(t, got.rejects)

	tooMany := weekly(db.second, 4, roomsensor.MeasuredFrom.Add(150*week), 91, readingAt(roomsensor.MeasuredFrom, `"lux":"x"`), `{"lux":1}`)
	tooMany.arrival.At = tooMany.arrival.At.Add(time.Minute)
	for range 2 {
		writeAll(t, db.writer(), [][]*delivery{{tooMany, weekly(db.second, 5, clock(9, 0, 0), 1)}})
		got = db.snapshot(t)
		require.Equal(t, 181, db.count(t, "readings"))
		require.Equal(t, map[string]string{"4 too_many_chunks": string(tooMany.text)}, got.rejects)
		require.Equal(t, tooMany.arrival.At, got.heartbeats[db.a.String()].LastSeenAt)
	}

	reject := db.onlyReject(t)
	require.Contains(t, reject.Detail, "would create 61 chunks")
	rest, err := ReplayForTeam(t.Context(), db, reject)
	require.NoError(t, err)
	require.Equal(t, roomsensor.ReasonTooManyChunks, rest[0].Reason, "people of a team have the limits of uploads")
	require.Equal(t, 181, db.count(t, "readings"))
	rest, err = Replay(t.Context(), db, reject)
	require.NoError(t, err)
	require.Len(t, rest, 2, "the readings that no replay can store")
	require.Equal(t, 181+61, db.count(t, "readings"))
}

// All uploads of a team may create 120 chunks in a day, counted over all workers (decision 53 c). Uploads into chunks that
// exist, and that of the arrival, do not count.
func TestWriteManyChunksOfTeam(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 53 c 3", "decision 53 c 4")
	db := newDatabase(t)
	ofTeam := func(sequence uint64, from time.Time, weeks int) *delivery {
		d := weekly(db.second, sequence, from, weeks)
		d.arrival.Team = &db.ours
		return d
	}
	one, other := db.writer(), db.writer()
	writeAll(t, one, [][]*delivery{{ofTeam(1, roomsensor.MeasuredFrom, 60), ofTeam(2, clock(9, 0, 0), 1)}})
	writeAll(t, other, [][]*delivery{
		{ofTeam(3, roomsensor.MeasuredFrom, 119)},
		{ofTeam(4, roomsensor.MeasuredFrom.Add(118*week), 2)},
	})
	require.Equal(t, 121, db.count(t, "readings"))

	last := ofTeam(5, roomsensor.MeasuredFrom.Add(119*week), 2)
	writeAll(t, one, [][]*delivery{
		{last, ofTeam(6, roomsensor.MeasuredFrom, 120), weekly(db.second, 7, roomsensor.MeasuredFrom.Add(121*week), 1)},
	})
	require.Equal(t, map[string]string{"5 too_many_chunks": string(last.text)}, db.snapshot(t).rejects)
	require.Equal(t, 122, db.count(t, "readings"), "an upload without a team has no such limit")
	reject := db.onlyReject(t)
	require.Contains(t, reject.Detail, "replay this reject tomorrow")
	rest, err := ReplayForTeam(t.Context(), db, reject)
	require.NoError(t, err)
	require.Len(t, rest, 1)

	_, err = db.sql.Exec(t.Context(), "UPDATE opened_chunks SET opened_on = opened_on - 1")
	require.NoError(t, err)
	rest, err = ReplayForTeam(t.Context(), db, reject)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, 1, db.count(t, "opened_chunks"), "those of the day before are deleted")
}

// Workers that count the chunks of a team at the same time allow no more than one that does it alone.
func TestOpenChunksTogether(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	var group errgroup.Group
	var allowed atomic.Int64
	for i := range 40 {
		group.Go(func() error {
			start := []time.Time{clock(0, 0, 0).Add(time.Duration(i/2) * week)}
			ok, err := db.OpenChunks(t.Context(), db.ours, [][]time.Time{start}, 10)
			if ok[0] {
				allowed.Add(1)
			}
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.EqualValues(t, 20, allowed.Load(), "each of 10 chunks, twice")
	require.Equal(t, 10, db.count(t, "opened_chunks"))
}

// onlyReject returns the only reject, with its payload.
func (db *database) onlyReject(t *testing.T) roomsensor.Reject {
	t.Helper()
	list, err := db.Rejects(t.Context(), roomsensor.RejectQuery{Limit: 2})
	require.NoError(t, err)
	require.Len(t, list, 1)
	reject, err := db.Reject(t.Context(), list[0].ID)
	require.NoError(t, err)
	return reject
}

// refuse makes the database refuse the readings of a device, or of all devices for uuid.Nil, with a SQLSTATE.
func (db *database) refuse(t *testing.T, state string, device uuid.UUID) {
	t.Helper()
	_, err := db.sql.Exec(t.Context(), fmt.Sprintf(`CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF '%[2]s' IN (NEW.device_id::text, '%[3]s') THEN RAISE EXCEPTION 'refused' USING ERRCODE = '%[1]s'; END IF;
			RETURN NEW;
		END $$;
		CREATE OR REPLACE TRIGGER refuse BEFORE INSERT ON readings FOR EACH ROW EXECUTE FUNCTION refuse()`, state, device, uuid.Nil))
	require.NoError(t, err)
}

// accept undoes refuse.
func (db *database) accept(t *testing.T) {
	t.Helper()
	_, err := db.sql.Exec(t.Context(), "DROP TRIGGER refuse ON readings")
	require.NoError(t, err)
}
