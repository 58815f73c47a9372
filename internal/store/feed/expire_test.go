package feed_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/internal/store/pg"
	"roomsensor/schema"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
	"roomsensor/test/storetest"
)

// expiry is a database with a store that has the rights of a worker only.
type expiry struct {
	*fixture

	worker *store.Store
	db     *dbtest.DB
}

func newExpiry(t *testing.T) *expiry {
	t.Helper()
	database := dbtest.New(t)
	f := &fixture{storetest.Connect(t, database.URL)}
	f.DeviceID = f.NewDevice(t, "dev:1")
	return &expiry{f, open(t, database.As(t, schema.RoleWorker), store.Ingest), database}
}

// fillDays inserts a reading at the noon of some of the last days into devices. The tests leave out the days around the
// start of a retention, because midnight may pass meanwhile.
func (e *expiry) fillDays(t *testing.T, first, last int, devices ...uuid.UUID) {
	t.Helper()
	e.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm)
		SELECT d, date_trunc('day', now(), 'UTC') - n * interval '24 hours' + interval '12 hours', 400
		FROM unnest($3::uuid[]) d, generate_series($1::int, $2) n`, first, last, devices)
}

// pass lets the worker make the pass of the next hour.
func (e *expiry) pass(t *testing.T) map[uuid.UUID]roomsensor.ReadingRange {
	t.Helper()
	e.Exec(t, `UPDATE retention_state SET began_at = '-infinity'`)
	expired, begun, err := e.worker.ExpireReadings(t.Context())
	require.NoError(t, err)
	require.True(t, begun)
	return expired
}

// count returns the number of readings of a device.
func (e *expiry) count(t *testing.T, device uuid.UUID) int {
	t.Helper()
	return e.Number(t, `SELECT count(*) FROM readings WHERE device_id = '`+device.String()+`'`)
}

// TestExpireReadings checks what a pass deletes with a retention of the team, of a device, and none.
func TestExpireReadings(t *testing.T) {
	t.Parallel()
	e := newExpiry(t)
	short, long := e.NewDevice(t, "dev:2"), e.NewDevice(t, "dev:3")
	unlimited, err := e.CreateTeam(t.Context(), "Unlimited")
	require.NoError(t, err)
	other, err := e.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: unlimited.ID, HardwareID: "dev:4"}, time.Now())
	require.NoError(t, err)
	e.fillDays(t, 1, 8, e.DeviceID, long, other.ID)
	e.fillDays(t, 6, 8, short)
	e.fillDays(t, 13, 62, e.DeviceID, short, long, other.ID)
	e.Exec(t, `INSERT INTO samples (device_id, measured_at) SELECT device_id, bucket_at + interval '1 minute' FROM readings`)
	e.Exec(t, `INSERT INTO readings (device_id, bucket_at) VALUES ($1, '4000-01-01 00:00:00Z BC')`, e.DeviceID)
	require.Empty(t, e.pass(t), "nobody set a retention")

	require.NoError(t, e.SetTeamRetention(t.Context(), e.TeamID, new(int32(10))))
	require.NoError(t, e.SetRetention(t.Context(), e.TeamID, short, new(int32(3))))
	require.NoError(t, e.SetRetention(t.Context(), e.TeamID, long, new(int32(36_500))))
	silent := e.NewDevice(t, "dev:5")
	e.Exec(t, `INSERT INTO readings (device_id, bucket_at) VALUES ($1, '2023-01-01Z'), ($1, '2024-01-01Z')`, silent)
	before := e.Number(t, `SELECT count(*) FROM foreign_writes`)
	team := roomsensor.ReadingRange{Readings: 50 + 53 + 2, Samples: 50 + 53}
	require.Equal(t, map[uuid.UUID]roomsensor.ReadingRange{e.TeamID: team}, e.pass(t))
	require.Equal(t, 8+1, e.count(t, e.DeviceID), "the reading before the year 1 delays no other one")
	require.Zero(t, e.count(t, short), "the device has a shorter one")
	require.Equal(t, 58, e.count(t, long), "the device has a longer one")
	require.Equal(t, 58, e.count(t, other.ID))
	require.Equal(t, 8+58+58, e.Number(t, `SELECT count(*) FROM samples`))
	require.Equal(t, 2, e.Number(t, `SELECT count(*) FROM device_state WHERE bucket_at IS NULL`), "the newest reading expired")
	require.Equal(t, before, e.Number(t, `SELECT count(*) FROM foreign_writes`))
	require.Empty(t, e.pass(t))

	// What arrives late is stored, and the next pass deletes and counts it.
	require.EqualValues(t, 1, e.WriteRows(t, co2(e.DeviceID, "2024-01-01T00:00:00Z", 500)))
	require.Equal(t, map[uuid.UUID]roomsensor.ReadingRange{e.TeamID: {Readings: 1}}, e.pass(t))

	require.NoError(t, e.SetRetention(t.Context(), e.TeamID, long, nil))
	require.EqualValues(t, 50, e.pass(t)[e.TeamID].Readings, "the retention of the team applies again")
}

// TestExpireReadingsHourly checks that all workers together begin one pass in an hour.
func TestExpireReadingsHourly(t *testing.T) {
	t.Parallel()
	e := newExpiry(t)
	require.NoError(t, e.SetTeamRetention(t.Context(), e.TeamID, new(int32(10))))
	e.fillDays(t, 13, 20, e.DeviceID)
	require.Len(t, e.pass(t), 1)
	e.fillDays(t, 13, 20, e.DeviceID)
	second := open(t, e.db.As(t, schema.RoleWorker), store.Ingest)
	for _, worker := range []*store.Store{e.worker, second} {
		_, begun, err := worker.ExpireReadings(t.Context())
		require.NoError(t, err)
		require.False(t, begun)
	}
	require.Equal(t, 8, e.count(t, e.DeviceID))
	e.Exec(t, `UPDATE retention_state SET began_at = began_at - interval '1 hour'`)
	expired, _, err := second.ExpireReadings(t.Context())
	require.NoError(t, err)
	require.Len(t, expired, 1)
}

// TestExpireReadingsTurns checks that the devices of a team delay no other team, and a device that fails no other device.
func TestExpireReadingsTurns(t *testing.T) {
	t.Parallel()
	e := newExpiry(t)
	second, third := e.NewDevice(t, "dev:2"), e.NewDevice(t, "dev:3")
	small, err := e.CreateTeam(t.Context(), "Small")
	require.NoError(t, err)
	device, err := e.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: small.ID, HardwareID: "dev:5"}, time.Now())
	require.NoError(t, err)
	e.fillDays(t, 13, 20, e.DeviceID, second, third, device.ID)
	e.Exec(t, `UPDATE teams SET keep_days = 10`)
	listed, err := e.Queries.ExpiredDeviceList(t.Context(), e.worker.Pool, 2)
	require.NoError(t, err)
	require.Len(t, listed, 2)
	require.Contains(t, []uuid.UUID{listed[0].DeviceID, listed[1].DeviceID}, device.ID)

	e.Exec(t, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'damaged'; END$$`)
	e.Exec(t, `CREATE TRIGGER fail BEFORE DELETE ON readings FOR EACH ROW
		WHEN (OLD.device_id = '`+e.DeviceID.String()+`') EXECUTE FUNCTION fail()`)
	expired, _, err := e.worker.ExpireReadings(t.Context())
	require.ErrorContains(t, err, "device "+e.DeviceID.String())
	require.ErrorContains(t, err, "damaged")
	require.Equal(t, map[uuid.UUID]roomsensor.ReadingRange{e.TeamID: {Readings: 16}, small.ID: {Readings: 8}}, expired)
	require.Equal(t, 8, e.Number(t, `SELECT count(*) FROM readings`))
}

// TestExpiringDevices checks that a retention ends at the start of a day of UTC, whatever the time zone of the session is.
func TestExpiringDevices(t *testing.T) {
	t.Parallel()
	e := newExpiry(t)
	require.NoError(t, e.SetTeamRetention(t.Context(), e.TeamID, new(int32(400))))
	for _, zone := range []string{"America/New_York", "Pacific/Kiritimati", "UTC"} {
		var now, before time.Time
		require.NoError(t, pgx.BeginFunc(t.Context(), e.worker.Pool, func(tx pgx.Tx) error {
			if err := e.worker.Set(t.Context(), tx, "TimeZone", zone); err != nil {
				return err
			}
			return tx.QueryRow(t.Context(), `SELECT now(), expired_before FROM expiring_devices`).Scan(&now, &before)
		}))
		require.Equal(t, now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -400), before.UTC(), zone)
	}
}

// TestExpireReadingsRights checks that a worker can delete nothing that has not expired.
func TestExpireReadingsRights(t *testing.T) {
	t.Parallel()
	e := newExpiry(t)
	require.NoError(t, e.SetTeamRetention(t.Context(), e.TeamID, new(int32(10))))
	e.fillDays(t, 1, 8, e.DeviceID)
	for _, since := range []time.Time{{}, time.Now().AddDate(0, 0, -5)} {
		deleted, err := e.Queries.ReadingExpire(t.Context(), e.worker.Pool,
			db.ReadingExpireParams{DeviceID: e.DeviceID, Since: since})
		require.NoError(t, err)
		require.Zero(t, deleted)
	}
	_, err := e.Queries.ReadingDeleteRange(t.Context(), e.worker.Pool, db.ReadingDeleteRangeParams{
		DeviceID: e.DeviceID, WindowFrom: time.Time{}, WindowTo: time.Now(),
	})
	require.True(t, pg.IsDenied(err), err)
	require.Equal(t, 8, e.count(t, e.DeviceID))
}

// TestExpireReadingsFeed checks that the change feed does not report what expired: a copy keeps it.
func TestExpireReadingsFeed(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A5.13")
	e := newExpiry(t)
	follower := e.newFollower(e.watermark(t), e.Store)
	follower.deletions = 10
	e.WriteRows(t, co2(e.DeviceID, "2024-01-01T00:00:00Z", 400))
	follower.catchUp(t)
	require.Len(t, follower.copy, 1)
	require.NoError(t, e.SetTeamRetention(t.Context(), e.TeamID, new(int32(10))))
	require.Len(t, e.pass(t), 1)
	follower.catchUp(t)
	require.Len(t, follower.copy, 1)
	require.Empty(t, follower.deleted)
	require.Zero(t, e.Number(t, `SELECT count(*) FROM reading_deletions`))
	require.Zero(t, e.Number(t, `SELECT count(*) FROM audit_log WHERE object_kind = 'readings'`))
}
