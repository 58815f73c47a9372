package write_test

import (
	"bytes"
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/test/dbtest"
)

// TestWriteBatchNullMeasuredAt merges with a row that another tool inserted without measured_at, which counts as the
// start of its bucket.
func TestWriteBatchNullMeasuredAt(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, "INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c) VALUES ($1, '2026-01-01T00:00:00Z', 700, 20)", f.DeviceID)
	f.WriteRows(t, co2(f.DeviceID, "2026-01-01T00:00:00Z", 650))
	value, _ := f.ReadAll(t, f.DeviceID)[0].Values.Get(roomsensor.CO2)
	require.EqualValues(t, 700, value)
	f.WriteRows(t, co2(f.DeviceID, "2026-01-01T00:00:01Z", 650))
	stored := f.ReadAll(t, f.DeviceID)[0]
	value, _ = stored.Values.Get(roomsensor.CO2)
	require.EqualValues(t, 650, value)
	_, ok := stored.Values.Get(roomsensor.Temp)
	require.False(t, ok, "the later measurement replaces the reading as a whole")
}

// TestWriteBatchNotStorable writes a timestamp that the database cannot store, in batches that are sent as arrays and
// by COPY.
func TestWriteBatchNotStorable(t *testing.T) {
	t.Parallel()
	f := setup(t)
	bad := co2(f.DeviceID, "2026-01-01T00:00:00Z", 1)
	bad.MeasuredAt = time.Date(-20000, 1, 1, 0, 0, 0, 0, time.UTC)
	_, err := f.WriteBatch(t.Context(), roomsensor.Batch{
		Rows:    []roomsensor.DeviceMeasurement{bad, co2(f.DeviceID, "2026-01-01T00:00:00Z", 1)},
		Rejects: []roomsensor.Reject{{Arrival: roomsensor.Arrival{At: time.Now(), Sequence: 7}, Reason: roomsensor.ReasonUnknownUnit}},
	})
	require.ErrorIs(t, err, roomsensor.ErrNotStorable)
	require.Empty(t, f.ReadAll(t, f.DeviceID), "a batch is one transaction")
	rejects, err := f.Rejects(t.Context(), roomsensor.RejectQuery{Limit: 10})
	require.NoError(t, err)
	require.Empty(t, rejects, "a batch is one transaction")

	_, err = open(t, "postgres://nobody@127.0.0.1:1/none", store.Ingest).
		WriteBatch(t.Context(), roomsensor.Batch{Rows: []roomsensor.DeviceMeasurement{bad}})
	require.NotErrorIs(t, err, roomsensor.ErrNotStorable, "an unavailable database refuses nothing")
	requireCode(t, err, roomsensor.CodeOverloaded)
}

// compareKeys compares by primary key.
func compareKeys(a, b roomsensor.DeviceMeasurement) int {
	if order := bytes.Compare(a.DeviceID[:], b.DeviceID[:]); order != 0 {
		return order
	}
	return a.MeasuredAt.Compare(b.MeasuredAt)
}

// backlog returns the readings of devices that were offline, sorted by key.
func backlog(buckets int, devices ...uuid.UUID) (rows []roomsensor.DeviceMeasurement) {
	for _, id := range devices {
		for i := range buckets {
			row := roomsensor.DeviceMeasurement{DeviceID: id}
			row.MeasuredAt = exportFrom.Add(time.Duration(i) * roomsensor.BucketLength)
			row.Values.Set(roomsensor.CO2, float32(i))
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, compareKeys)
	return rows
}

// TestWriteBatchStatements checks that rows of arrays and copied rows are merged by the same SQL.
func TestWriteBatchStatements(t *testing.T) {
	t.Parallel()
	merge := func(query string) string {
		_, merge, found := strings.Cut(query, "ON CONFLICT")
		require.True(t, found)
		return merge
	}
	require.Equal(t, merge(db.ReadingUpsert), merge(db.ReadingUpsertIncoming))
}

// TestWriteBatchCopyLeftovers checks that rows that were copied for one batch, failed or not, are not part of the next
// one on the same connection.
func TestWriteBatchCopyLeftovers(t *testing.T) {
	t.Parallel()
	f := setup(t)
	worker := open(t, f.URL, store.Ingest)
	rows := f.Sequence(t, 2_500)
	refused := slices.Clone(rows)
	refused[500].DeviceID = uuid.UUID{}
	refused[500].MeasuredAt = roomsensor.Forever.AddDate(300_000, 0, 0) // After what a timestamp can hold.

	_, err := worker.WriteBatch(t.Context(), roomsensor.Batch{Rows: refused})
	require.ErrorIs(t, err, roomsensor.ErrNotStorable)
	one := co2(f.DeviceID, "2026-01-01T00:00:00Z", 400)
	for _, batch := range [][]roomsensor.DeviceMeasurement{{one}, rows, {one}} {
		_, err := worker.WriteBatch(t.Context(), roomsensor.Batch{Rows: batch})
		require.NoError(t, err)
	}
	var stored int
	require.NoError(t, f.SQL.QueryRow(t.Context(), "SELECT count(*) FROM readings").Scan(&stored))
	require.Equal(t, len(rows)+1, stored)
}

// TestWriteBatchNewRows checks that the table and the number of changes do not depend on whether rows are copied
// straight into the table, because none of them is stored, or merged.
func TestWriteBatchNewRows(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stored  func(rows []roomsensor.DeviceMeasurement) []roomsensor.DeviceMeasurement
		changed int64
	}{
		"none":                         {func([]roomsensor.DeviceMeasurement) []roomsensor.DeviceMeasurement { return nil }, 3_000},
		"the first":                    {func(r []roomsensor.DeviceMeasurement) []roomsensor.DeviceMeasurement { return r[:1] }, 2_999},
		"one in the middle":            {func(r []roomsensor.DeviceMeasurement) []roomsensor.DeviceMeasurement { return r[1_700:1_701] }, 2_999},
		"the last":                     {func(r []roomsensor.DeviceMeasurement) []roomsensor.DeviceMeasurement { return r[2_999:] }, 2_999},
		"all of them":                  {func(r []roomsensor.DeviceMeasurement) []roomsensor.DeviceMeasurement { return r }, 0},
		"the buckets before and after": {func([]roomsensor.DeviceMeasurement) []roomsensor.DeviceMeasurement { return neighbors() }, 3_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			worker := open(t, f.URL, store.Ingest)
			rows := backlog(1_500, f.DeviceID, f.NewDevice(t, "dev:2"))
			there := test.stored(rows)
			for i := range there {
				if there[i].DeviceID == (uuid.UUID{}) {
					there[i].DeviceID = f.DeviceID
				}
			}
			if len(there) > 0 {
				f.WriteRows(t, there...)
			}
			changed, err := worker.WriteBatch(t.Context(), roomsensor.Batch{Rows: rows})
			require.NoError(t, err)
			require.Equal(t, test.changed, changed)
			again, err := worker.WriteBatch(t.Context(), roomsensor.Batch{Rows: rows})
			require.NoError(t, err)
			require.Zero(t, again)
			stored := 0
			for _, r := range f.ReadAll(t, f.DeviceID) {
				if x, ok := r.Values.Get(roomsensor.CO2); ok && x >= 0 {
					require.Equal(t, exportFrom.Add(time.Duration(x)*roomsensor.BucketLength), r.BucketAt)
					stored++
				}
			}
			require.Equal(t, 1_500, stored)
		})
	}
}

// neighbors returns readings in the buckets before and after those of backlog(1_500).
func neighbors() []roomsensor.DeviceMeasurement {
	rows := make([]roomsensor.DeviceMeasurement, 2)
	rows[0].MeasuredAt = exportFrom.Add(-roomsensor.BucketLength)
	rows[1].MeasuredAt = exportFrom.Add(1_500 * roomsensor.BucketLength)
	for i := range rows {
		rows[i].Values.Set(roomsensor.CO2, -1)
	}
	return rows
}

// TestWriteBatchNewRowsConcurrent stores a row between the check that none is stored and the COPY of another worker:
// the worker tries again and merges both measurements.
func TestWriteBatchNewRowsConcurrent(t *testing.T) {
	t.Parallel()
	f := setup(t)
	worker := open(t, f.URL, store.Ingest)
	rows := backlog(2_500, f.DeviceID)
	f.WriteRows(t, backlog(2_500, f.NewDevice(t, "dev:2"))...) // The chunk must exist, or the COPY waits for its creation.
	conn, err := pgx.Connect(t.Context(), f.URL)               // A transaction of the pool would see a frozen pg_stat_activity.
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	other, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), "INSERT INTO readings (device_id, bucket_at, measured_at, temp_c) VALUES ($1, $2, $2, 21.5)",
		f.DeviceID, rows[1_000].MeasuredAt)
	require.NoError(t, err)

	var changed int64
	written := make(chan error, 1)
	go func() {
		var err error
		changed, err = worker.WriteBatch(context.WithoutCancel(t.Context()), roomsensor.Batch{Rows: rows})
		written <- err
	}()
	require.Eventually(t, func() (waiting bool) {
		err := f.SQL.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event = 'transactionid' AND query LIKE '%COPY readings%')`).Scan(&waiting)
		return err == nil && waiting
	}, patience, 10*time.Millisecond)
	require.NoError(t, other.Commit(t.Context()))
	require.NoError(t, <-written)
	require.EqualValues(t, 2_500, changed)
	stored := f.ReadAll(t, f.DeviceID)
	require.Len(t, stored, 2_500)
	merged := stored[len(stored)-1-1_000]
	co2, _ := merged.Values.Get(roomsensor.CO2)
	temp, _ := merged.Values.Get(roomsensor.Temp)
	require.Equal(t, []float32{1_000, 21.5}, []float32{co2, temp})
}

// TestWriteBatchDeadlock checks that a transaction that a deadlock or another worker's row ended is attempted again.
func TestWriteBatchDeadlock(t *testing.T) {
	t.Parallel()
	f := setup(t)
	worker := open(t, f.URL, store.Ingest)
	for _, state := range []string{"40P01", "23505"} {
		f.Exec(t, `DROP SEQUENCE IF EXISTS attempts; CREATE SEQUENCE attempts;
			CREATE OR REPLACE FUNCTION fail_twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF nextval('attempts') <= 2 THEN RAISE EXCEPTION 'failed' USING ERRCODE = '`+state+`'; END IF;
				RETURN NEW;
			END $$;
			CREATE OR REPLACE TRIGGER fail_twice BEFORE INSERT ON readings FOR EACH ROW EXECUTE FUNCTION fail_twice()`)
		changed, err := worker.WriteBatch(t.Context(), roomsensor.Batch{Rows: backlog(1, f.InsertDevice(t))})
		require.NoError(t, err, state)
		require.EqualValues(t, 1, changed)
	}
}

// TestWriteBatchUnavailable checks that a server that refuses the connection does not look like refused data.
func TestWriteBatchUnavailable(t *testing.T) {
	t.Parallel()
	missing, err := url.Parse(dbtest.Empty(t).URL)
	require.NoError(t, err)
	missing.Path = "/missing"
	_, err = open(t, missing.String(), store.Ingest).WriteBatch(t.Context(), roomsensor.Batch{Rows: backlog(1, uuid.New())})
	require.ErrorContains(t, err, "3D000")
	require.NotErrorIs(t, err, roomsensor.ErrRefused)
	require.NotErrorIs(t, err, roomsensor.ErrBlocked)
}
