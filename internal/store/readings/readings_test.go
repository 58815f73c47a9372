package readings_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// TestLateReadings checks when a reading counts as late, also if its times are unknown or infinite, which SQL can insert.
func TestLateReadings(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at, measured_at, ingested_at) VALUES
		($1, '2026-01-01T00:00:00Z', '2026-01-01T00:02:00Z', '2026-01-01T01:02:00Z'),
		($1, '2026-01-01T01:00:00Z', '2026-01-01T01:02:00Z', '2026-01-01T02:02:01Z'),
		($1, '2026-01-01T01:55:00Z', '2026-01-01T01:55:00Z', '2026-01-03T01:55:00Z'),
		($1, '2026-01-01T02:00:00Z', NULL, '2026-01-01T04:00:00Z'),
		($1, '2026-01-01T03:00:00Z', 'infinity', '2026-01-01T04:00:00Z'),
		($1, '2026-01-01T04:00:00Z', '-infinity', 'infinity'),
		($1, '2026-01-01T05:00:00Z', '2026-01-01T05:00:00Z', '2026-01-02T05:00:00Z')`, f.DeviceID)
	window := roomsensor.Window{From: at("2026-01-01T00:00:00Z"), To: at("2026-01-01T05:00:00Z")}
	late, err := f.LateReadings(t.Context(), f.TeamID, f.DeviceID, window, time.Hour)
	require.NoError(t, err)
	require.Equal(t, []roomsensor.LateReadings{
		{From: at("2026-01-01T01:00:00Z"), Delay: 48 * time.Hour},
		{From: at("2026-01-01T02:00:00Z"), Delay: 2 * time.Hour},
		{From: at("2026-01-01T04:00:00Z"), Delay: 1e9 * time.Second},
	}, late)
	late, err = f.LateReadings(t.Context(), f.TeamID, f.DeviceID, window, roomsensor.BucketLength)
	require.NoError(t, err)
	require.Equal(t, roomsensor.LateReadings{From: at("2026-01-01T01:00:00Z"), Delay: time.Hour + time.Second}, late[0])
	other, err := f.CreateTeam(t.Context(), "Other")
	require.NoError(t, err)
	late, err = f.LateReadings(t.Context(), other.ID, f.DeviceID, window, time.Hour)
	require.NoError(t, err)
	require.Empty(t, late)
}

// TestTimestampsOutOfRange checks that timestamps that the API cannot express are read as the nearest that it can.
func TestTimestampsOutOfRange(t *testing.T) {
	t.Parallel()
	f := setup(t)
	key, err := f.CreateAPIKey(t.Context(), roomsensor.Key{ID: "key", TeamID: f.TeamID, Scope: roomsensor.ScopeRead})
	require.NoError(t, err)
	f.Exec(t, "UPDATE api_keys SET expires_at = 'infinity'")
	f.Exec(t, "UPDATE device_state SET last_seen_at = '-infinity'")
	f.Exec(t, `INSERT INTO assignments (device_id, type, label, started_at, ended_at)
		VALUES ($1, 'place', 'Room', '4000-01-01 BC', 'infinity')`, f.DeviceID)
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at, ingested_at) VALUES
		($1, '2026-01-01T00:00:00Z', 'infinity'), ($1, '2026-01-01T00:05:00Z', '20000-01-01T00:00:00Z')`, f.DeviceID)

	first := at("0001-01-01T00:00:00Z")
	found, err := f.APIKeysByID(t.Context(), []string{key.ID, "unknown"})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, roomsensor.Forever, found[0].ExpiresAt.UTC())
	device, err := f.Device(t.Context(), f.TeamID, f.DeviceID)
	require.NoError(t, err)
	require.Equal(t, first, device.LastSeenAt.UTC())
	assignments, err := f.Assignments(t.Context(), f.TeamID, f.DeviceID, roomsensor.AssignmentQuery{Limit: 10})
	require.NoError(t, err)
	require.Equal(t, first, assignments[0].StartedAt)
	require.Equal(t, roomsensor.Forever, *assignments[0].EndedAt)
	for _, r := range f.ReadAll(t, f.DeviceID) {
		require.Equal(t, roomsensor.Forever, r.IngestedAt)
	}
}

// TestCurrentDevicesNaN checks that values that are read as null do not count in the statistics either.
func TestCurrentDevicesNaN(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db) VALUES
		($1, '2026-01-01T00:00:00Z', 'NaN', 'Infinity', '-Infinity', '-0', 'NaN'),
		($1, '2026-01-01T00:05:00Z', 400, 20, NULL, '-0', 'Infinity'),
		($1, '2026-01-01T00:10:00Z', 402, '-Infinity', 50, '-0', '-Infinity')`, f.DeviceID)
	current, err := f.CurrentDevices(t.Context(), f.TeamID, roomsensor.DeviceQuery{Limit: 10},
		roomsensor.SummaryWindow(at("2026-01-01T00:30:00Z")))
	require.NoError(t, err)
	require.Len(t, current, 1)
	require.Equal(t, roomsensor.Stats{
		roomsensor.CO2:      {Min: 400, Max: 402, Sum: 802, Count: 2},
		roomsensor.Temp:     {Min: 20, Max: 20, Sum: 20, Count: 1},
		roomsensor.Humidity: {Min: 50, Max: 50, Sum: 50, Count: 1},
		roomsensor.Lux:      {Count: 3},
	}, current[0].Last24h)
	lux := current[0].Last24h[roomsensor.Lux]
	for _, x := range []float32{lux.Min, lux.Max, lux.Mean()} {
		require.False(t, math.Signbit(float64(x)), "-0 is 0")
	}
}

// TestBackdateReadings checks that readings of a window get the time soon after they were measured, or the given one, and
// that an earlier arrival and other readings stay.
func TestBackdateReadings(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at, measured_at, ingested_at)
		SELECT $1, at, at + interval '1 minute', CASE WHEN at = '2026-01-01T00:10:00Z' THEN at ELSE '2026-02-01T00:00:00Z' END
		FROM generate_series('2026-01-01T00:00:00Z'::timestamptz, '2026-01-01T00:20:00Z', interval '5 minutes') at`, f.DeviceID)
	from, late := at("2026-01-01T00:00:00Z"), at("2026-01-01T09:00:00Z")
	require.NoError(t, f.BackdateReadings(t.Context(), f.DeviceID, from, from.Add(15*time.Minute), time.Time{}))
	require.NoError(t, f.BackdateReadings(t.Context(), f.DeviceID, from.Add(15*time.Minute), from.Add(20*time.Minute), late))
	var got []string
	for _, r := range f.ReadAll(t, f.DeviceID) {
		got = append(got, r.IngestedAt.UTC().Format(time.RFC3339))
	}
	slices.Sort(got)
	require.Equal(t, []string{
		"2026-01-01T00:01:30Z", "2026-01-01T00:06:30Z", "2026-01-01T00:10:00Z", "2026-01-01T09:00:00Z", "2026-02-01T00:00:00Z",
	}, got)
}
