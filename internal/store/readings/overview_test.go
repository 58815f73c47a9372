package readings_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// overviewFrom is the start of an hour.
var overviewFrom = time.Date(2026, time.November, 20, 8, 0, 0, 0, time.UTC)

func TestHourlyCO2(t *testing.T) {
	t.Parallel()
	f := setup(t)
	silent := f.NewDevice(t, "dev:2")
	hours := roomsensor.Window{From: overviewFrom, To: overviewFrom.Add(4 * time.Hour)}
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm) VALUES
		($1, $2::timestamptz - interval '5 minutes', 9000),
		($1, $2, 400), ($1, $2::timestamptz + interval '55 minutes', 500), ($1, $2::timestamptz + interval '5 minutes', NULL),
		($1, $2::timestamptz + interval '10 minutes', 'NaN'), ($1, $2::timestamptz + interval '15 minutes', 'Infinity'),
		($1, $2::timestamptz + interval '3 hours', 700),
		($1, $2::timestamptz + interval '4 hours', 9000)`, f.DeviceID, overviewFrom)
	means, err := f.HourlyCO2(t.Context(), f.TeamID, []uuid.UUID{f.DeviceID, silent}, hours)
	require.NoError(t, err)
	require.Len(t, means, 1)
	got := means[f.DeviceID]
	require.Len(t, got, 4)
	require.Equal(t, []float32{450, 700}, []float32{got[0], got[3]})
	require.True(t, math.IsNaN(float64(got[1])) && math.IsNaN(float64(got[2])), "hours without a value")

	other, err := f.CreateTeam(t.Context(), "Other")
	require.NoError(t, err)
	means, err = f.HourlyCO2(t.Context(), other.ID, []uuid.UUID{f.DeviceID}, hours)
	require.NoError(t, err)
	require.Empty(t, means, "the device of another team")
}

func TestOlderValues(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db) VALUES
		($1, $2, 1, NULL, NULL, NULL, NULL),
		($1, $2::timestamptz - interval '5 minutes', 2, 'NaN', NULL, NULL, NULL),
		($1, $2::timestamptz - interval '10 minutes', 3, 21.5, NULL, NULL, NULL),
		($1, $2::timestamptz - interval '15 minutes', 4, 22.5, NULL, NULL, NULL),
		($1, $2::timestamptz - interval '3 days', NULL, NULL, 40, NULL, NULL),
		($1, $2::timestamptz - interval '8 days', NULL, NULL, NULL, 90, NULL)`, f.DeviceID, overviewFrom)
	missing := []roomsensor.MissingValue{
		{DeviceID: f.DeviceID, Metric: roomsensor.Temp, Before: overviewFrom},
		{DeviceID: f.DeviceID, Metric: roomsensor.Humidity, Before: overviewFrom},
		{DeviceID: f.DeviceID, Metric: roomsensor.Lux, Before: overviewFrom},
		{DeviceID: f.DeviceID, Metric: roomsensor.Sound, Before: overviewFrom},
	}
	temperature := roomsensor.OlderValue{
		DeviceID: f.DeviceID, Metric: roomsensor.Temp, BucketAt: overviewFrom.Add(-10 * time.Minute), Value: 21.5,
	}
	humidity := roomsensor.OlderValue{
		DeviceID: f.DeviceID, Metric: roomsensor.Humidity, BucketAt: overviewFrom.AddDate(0, 0, -3), Value: 40,
	}
	found, err := f.OlderValues(t.Context(), f.TeamID, missing)
	require.NoError(t, err)
	require.ElementsMatch(t, []roomsensor.OlderValue{temperature, humidity}, found)

	t.Run("many are searched for a day", func(t *testing.T) {
		many := missing
		for len(many) < 250 {
			many = append(many, roomsensor.MissingValue{DeviceID: uuid.New(), Before: overviewFrom})
		}
		found, err := f.OlderValues(t.Context(), f.TeamID, many)
		require.NoError(t, err)
		require.Equal(t, []roomsensor.OlderValue{temperature}, found)
	})
	t.Run("devices of other teams have none", func(t *testing.T) {
		other, err := f.CreateTeam(t.Context(), "Other")
		require.NoError(t, err)
		found, err := f.OlderValues(t.Context(), other.ID, missing)
		require.NoError(t, err)
		require.Empty(t, found)
	})
}
