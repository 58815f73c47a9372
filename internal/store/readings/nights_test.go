package readings_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
	"roomsensor/internal/roomsensor/airquality"
)

// nightWindow is the night of these tests. It is not over at nightNow.
var (
	nightWindow = roomsensor.Window{From: at("2026-03-09T21:30:00Z"), To: at("2026-03-10T06:30:00Z")}
	nightNow    = at("2026-03-10T05:01:00Z")
)

// addNights stores readings of some nights for all devices, every 15 minutes, and values that are not finite.
func (f *fixture) addNights(t *testing.T) {
	t.Helper()
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c)
		SELECT d.id, t, 600 + 900 * sin(extract(epoch FROM t)), CASE WHEN extract(minute FROM t) = 0 THEN 'NaN'::real ELSE 20 END
		FROM devices d, generate_series('2026-03-05Z', '2026-03-10T12:00:00Z'::timestamptz, '15 minutes') t`)
}

// assign adds an assignment of a device; an empty end is none.
func (f *fixture) assign(t *testing.T, device uuid.UUID, label, from, to string) {
	t.Helper()
	f.Exec(t, `INSERT INTO assignments (device_id, type, label, home_or_travel, started_at, ended_at)
		VALUES ($1, 'place', $2, 'home', $3, nullif($4, '')::timestamptz)`, device, label, from, to)
}

// requireNight compares a night of an assignment with the aggregates of its part of the night, and with a count in SQL.
func (f *fixture) requireNight(t *testing.T, room *airquality.NightRoom, got airquality.NightResult, now time.Time) {
	t.Helper()
	aggregates, err := f.DeviceAggregates(t.Context(), f.TeamID, room.Assignment.DeviceID, aggregate.Query{
		Window: got.Window, Buckets: []roomsensor.Window{got.Window}, Now: now,
	})
	require.NoError(t, err)
	require.Equal(t, aggregates[0].Expected, got.Expected)
	require.Equal(t, aggregates[0].Present, got.Present)
	for m := range got.Metrics {
		require.Equal(t, aggregates[0].Metrics[m], got.Metrics[m].Summary)
	}
	var above int
	require.NoError(t, f.SQL.QueryRow(t.Context(), `SELECT count(*) FROM readings WHERE device_id = $1 AND co2_ppm > 1400
		AND bucket_at >= $2 AND bucket_at < $3`, room.Assignment.DeviceID, got.Window.From, got.Window.To).Scan(&above))
	require.Equal(t, above, got.Metrics[roomsensor.CO2].High.Bad)
}

// TestNightRooms checks which assignments have a night, what it holds for one that ended and one that began meanwhile,
// and that those of other teams do not.
func TestNightRooms(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, `UPDATE devices SET display_name = 'Sensor' WHERE id = $1`, f.DeviceID)
	second := f.NewDevice(t, "dev:2")
	f.assign(t, f.DeviceID, "Before", "2026-01-01Z", "2026-03-09T21:30:00Z")
	f.assign(t, f.DeviceID, "Ends", "2026-03-09T21:30:00Z", "2026-03-09T23:07:00Z")
	f.assign(t, f.DeviceID, "Begins", "2026-03-09T23:07:00Z", "")
	f.assign(t, second, "Whole", "2026-03-06T23:00:00Z", "")
	f.assign(t, f.NewDevice(t, "dev:3"), "After", "2026-03-10T06:30:00Z", "")
	f.Exec(t, `INSERT INTO teams (id, name) VALUES ('00000000-0000-0000-0000-0000000000ff', 'Other')`)
	f.Exec(t, `UPDATE device_hardware SET installed_at = '2026-03-09T22:00:00Z' WHERE device_id = $1`, second)
	other := f.NewDevice(t, "dev:4")
	f.Exec(t, `UPDATE devices SET team_id = '00000000-0000-0000-0000-0000000000ff' WHERE id = $1`, other)
	f.assign(t, other, "Other", "2026-01-01Z", "")
	f.addNights(t)

	q := airquality.NightQuery{Window: nightWindow, Limits: &airquality.TeamLimits{Limits: airquality.DefaultLimits()}, Now: nightNow}
	rooms, more, err := f.NightRooms(t.Context(), f.TeamID, q)
	require.NoError(t, err)
	require.False(t, more)
	byLabel := map[string]*airquality.NightRoom{}
	for i := range rooms {
		byLabel[rooms[i].Assignment.Label] = &rooms[i]
		f.requireNight(t, &rooms[i], rooms[i].NightResult, nightNow)
		require.NotZero(t, rooms[i].Metrics[roomsensor.CO2].High.Bad)
	}
	require.Len(t, byLabel, 3)
	require.Equal(t, "Sensor", *byLabel["Begins"].DeviceName)
	require.Equal(t, at("2026-03-09T23:07:00Z"), byLabel["Begins"].Window.From)
	require.Equal(t, at("2026-03-09T23:07:00Z"), byLabel["Ends"].Window.To)
	require.Equal(t, 84, byLabel["Whole"].Expected, "from the installation at 22:00 until 05:00")

	var nights []airquality.NightQuery
	for i := range 5 {
		q.Window = roomsensor.Window{From: nightWindow.From.AddDate(0, 0, -1-i), To: nightWindow.To.AddDate(0, 0, -1-i)}
		nights = append(nights, q)
	}
	rooms, history, more, err := f.RoomNights(t.Context(), f.TeamID, nights,
		func(a *roomsensor.Assignment) bool { return a.Label != "Before" })
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, rooms, 1, "the others began later")
	for i := range rooms {
		require.Len(t, history[i], 5)
		for n, result := range history[i] {
			inside := n < 3
			require.Equal(t, !inside, result.Window.Empty(), "%s %d", rooms[i].Assignment.Label, n)
			if inside {
				f.requireNight(t, &rooms[i], result, nightNow)
			}
			if inside && n == 2 {
				require.Equal(t, at("2026-03-06T23:00:00Z"), result.Window.From)
			}
		}
	}

	last := uuid.MustParse("ffffffff-ffff-4fff-bfff-ffffffffffff")
	f.Exec(t, `INSERT INTO devices (id, team_id, hardware_id) VALUES ($1, $2, 'dev:6')`, last, f.TeamID)
	f.assign(t, last, "Sought", "2026-03-01Z", "")
	f.Exec(t, `INSERT INTO assignments (device_id, type, label, started_at, ended_at) SELECT $1, 'athlete', 'x', at, at + interval '1 second'
		FROM generate_series(timestamptz '2026-03-05Z', '2026-03-05 00:36Z', '1 second') at`, f.NewDevice(t, "dev:5"))
	rooms, _, more, err = f.RoomNights(t.Context(), f.TeamID, nights,
		func(a *roomsensor.Assignment) bool { return a.Label == "Sought" })
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, rooms, 1, "among more assignments than a night may have")

	foreign, more, err := f.NightRooms(t.Context(), uuid.New(), q)
	require.NoError(t, err)
	require.Empty(t, foreign)
	require.False(t, more)
	f.Exec(t, `ALTER TABLE device_hardware RENAME TO gone`)
	_, _, err = f.NightRooms(t.Context(), f.TeamID, q)
	require.ErrorContains(t, err, "device_hardware", "a failure after the assignments were read")
}

// TestEachNight checks that nights which are read in pieces, of few assignments and of many, equal those that are read
// alone, until the function has enough.
func TestEachNight(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.assign(t, f.DeviceID, "Whole", "2026-01-01Z", "2026-03-09T20:00:00Z") // Not in the newest night.
	second := f.NewDevice(t, "dev:2")
	f.assign(t, second, "Ends", "2026-01-01Z", "2026-03-07T00:00:00Z")
	f.assign(t, second, "Begins", "2026-03-07T00:00:00Z", "2026-03-09T12:00:00Z")
	f.addNights(t)
	var nights []airquality.NightQuery
	for i := range 5 {
		nights = append(nights, airquality.NightQuery{
			Window: roomsensor.Window{From: nightWindow.From.AddDate(0, 0, -i), To: nightWindow.To.AddDate(0, 0, -i)},
			Limits: &airquality.TeamLimits{Limits: airquality.DefaultLimits()}, Now: nightNow,
		})
	}
	for _, many := range []int{0, 250} { // With so many more, four nights are too many at once.
		f.Exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:9' || i FROM generate_series(1, $2::int) i`, f.TeamID, many)
		f.Exec(t, `INSERT INTO assignments (device_id, type, label, started_at, ended_at)
			SELECT id, 'place', 'Many', '2026-01-01Z', '2026-03-08Z' FROM devices WHERE hardware_id LIKE 'dev:9%'`)
		for _, most := range []int{1, 4, 10_000} {
			next, found := 1, 0
			require.NoError(t, f.EachNight(t.Context(), f.TeamID, nights, most, func(n int, rooms []airquality.NightRoom) bool {
				require.Equal(t, next, n)
				alone, more, err := f.NightRooms(t.Context(), f.TeamID, nights[n])
				require.NoError(t, err)
				require.False(t, more)
				require.Equal(t, alone, rooms)
				next, found = n+1, found+len(rooms)
				return found < most
			}))
			if most == 10_000 {
				require.Equal(t, 5, next)
				require.Equal(t, 9+3*many, found)
			}
		}
		count, err := f.CountNights(t.Context(), f.TeamID, nights)
		require.NoError(t, err)
		require.Equal(t, 9+3*many, count)
	}
	count, err := f.CountNights(t.Context(), uuid.New(), nights)
	require.NoError(t, err)
	require.Zero(t, count)
}
