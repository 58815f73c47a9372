package roomsensor_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
)

// drawMeasurement draws a measurement of few possible times and numbers, so that ties are common.
func drawMeasurement(t *rapid.T, label string) roomsensor.Measurement {
	m := roomsensor.Measurement{MeasuredAt: now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, label)) * time.Second)}
	for _, metric := range roomsensor.Metrics {
		if x := rapid.IntRange(-2, 2).Draw(t, label); x != -2 {
			m.Values.Set(metric, float32(x))
		}
	}
	return m
}

// TestMergeOrder checks that neither the order nor the repetition of measurements matters (decision 38).
func TestMergeOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawMeasurement(t, "a"), drawMeasurement(t, "b"), drawMeasurement(t, "c")
		require.Equal(t, roomsensor.Merge(a, b), roomsensor.Merge(b, a), "commutative")
		require.Equal(t, a, roomsensor.Merge(a, a), "idempotent")
		require.Equal(t,
			roomsensor.Merge(roomsensor.Merge(a, b), c),
			roomsensor.Merge(a, roomsensor.Merge(b, c)), "associative")
	})
}

// TestMerge checks the late-merge rule (decision 37).
func TestMerge(t *testing.T) {
	t.Parallel()
	measure := func(at time.Time, co2, temp float32) (m roomsensor.Measurement) {
		m.MeasuredAt = at
		m.Values.Set(roomsensor.CO2, co2)
		m.Values.Set(roomsensor.Temp, temp)
		return m
	}
	nan := float32(math.NaN()) // Counts as absent.
	tests := []struct {
		name       string
		a, b, want roomsensor.Measurement
	}{
		{
			"the later measurement replaces the earlier one as a whole, nulls included",
			measure(now, 900, 30), measure(now.Add(time.Microsecond), 400, nan), measure(now.Add(time.Microsecond), 400, nan),
		},
		{"a null never erases a value of the same measurement", measure(now, 900, nan), measure(now, nan, 20), measure(now, 900, 20)},
		{"the greater of two values is kept", measure(now, 900, -5), measure(now, 901, -6), measure(now, 901, -5)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, roomsensor.Merge(test.a, test.b))
		})
	}
}

// TestParseMetrics checks the parameter metrics (A1.4).
func TestParseMetrics(t *testing.T) {
	t.Parallel()
	all, err := roomsensor.ParseMetrics(nil)
	require.NoError(t, err)
	require.Equal(t, roomsensor.Metrics[:], all)
	for text, want := range map[string][]roomsensor.Metric{
		"lux":                                    {roomsensor.Lux},
		"lux,co2_ppm":                            {roomsensor.CO2, roomsensor.Lux},
		"spl_db,humidity_pct,temp_c":             {roomsensor.Temp, roomsensor.Humidity, roomsensor.Sound},
		"spl_db,lux,co2_ppm,temp_c,humidity_pct": all,
	} {
		got, err := roomsensor.ParseMetrics(&text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", ",", "lux,", ",lux", "lux,,co2_ppm", "lux,lux", "Lux", "lux ", " lux", "co2", "valid_mask", "lux;co2_ppm"} {
		_, err := roomsensor.ParseMetrics(&text)
		var refused *roomsensor.Error
		require.ErrorAs(t, err, &refused, text)
		require.Equal(t, roomsensor.CodeValidationFailed, refused.Code)
		require.Equal(t, "metrics", refused.Param)
		for _, m := range roomsensor.Metrics {
			require.Contains(t, refused.Message, m.String())
		}
	}
	for text, want := range map[string]string{"lux,CO2": ". Did you mean co2_ppm?", "temperature": ". Did you mean temp_c?", "spl": ". Did you mean spl_db?"} {
		_, err := roomsensor.ParseMetrics(&text)
		require.ErrorContains(t, err, "spl_db"+want, text)
	}
}

func TestBucketOf(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"2026-01-01T00:00:00Z":        "2026-01-01T00:00:00Z",
		"2026-01-01T00:04:59.999999Z": "2026-01-01T00:00:00Z",
		"2026-01-01T00:05:00Z":        "2026-01-01T00:05:00Z",
		"2015-02-04T17:51:59Z":        "2015-02-04T17:50:00Z",
	} {
		parsed, ok := roomsensor.ParseTime(at)
		require.True(t, ok)
		require.Equal(t, want, roomsensor.FormatTime(roomsensor.BucketOf(parsed)))
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	var v roomsensor.Values
	require.Zero(t, v.Mask())
	v.Set(roomsensor.Lux, float32(math.Copysign(0, -1)))
	v.Set(roomsensor.CO2, float32(math.Inf(1)))
	lux, ok := v.Get(roomsensor.Lux)
	require.True(t, ok)
	require.False(t, math.Signbit(float64(lux)), "negative zero is stored as zero")
	require.Equal(t, uint8(8), v.Mask())
	for _, m := range roomsensor.Metrics {
		v.Set(m, 1)
	}
	require.Equal(t, uint8(31), v.Mask())
}

func TestSummaryWindow(t *testing.T) {
	t.Parallel()
	require.Equal(t, "2026-03-09T13:00:00Z", roomsensor.FormatTime(roomsensor.SummaryWindow(now).From))
}

// TestMetricTables finds the tables that lack a metric: the compiler accepts a shorter literal.
func TestMetricTables(t *testing.T) {
	t.Parallel()
	for i, m := range roomsensor.Metrics {
		require.Equal(t, roomsensor.Metric(i), m)
		require.NotEmpty(t, m.String())
		least, greatest := m.Range()
		require.Less(t, least, greatest)
	}
}
