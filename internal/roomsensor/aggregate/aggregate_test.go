package aggregate_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
)

// plainMean is the mean of some numbers: their exact sum in double precision, divided by their number and rounded to 32
// bits (A1.7).
func plainMean(values []float32) float32 {
	sum := new(big.Rat)
	for _, x := range values {
		sum.Add(sum, new(big.Rat).SetFloat64(float64(x)))
	}
	rounded, _ := sum.Float64()
	return float32(rounded / float64(len(values)))
}

// hourOf aggregates values as the database does: with a sum that is rounded at each step.
func hourOf(values []float32) (s roomsensor.Stat) {
	for i, x := range values {
		if i == 0 {
			s.Min, s.Max = x, x
		}
		s.Min, s.Max, s.Sum, s.Count = min(s.Min, x), max(s.Max, x), s.Sum+float64(x), s.Count+1
	}
	return s
}

// sensorValues draws the values of a sensor with some resolution, and numbers of any size.
func sensorValues() *rapid.Generator[[]float32] {
	return rapid.Custom(func(t *rapid.T) []float32 {
		scale := rapid.SampledFrom([]float64{1, 2, 10, 100, 1000, 3, 1e30, 1e-30}).Draw(t, "scale")
		number := rapid.Custom(func(t *rapid.T) float32 {
			return float32(float64(rapid.IntRange(-3000, 200_000).Draw(t, "n"))/scale) + 0
		})
		if scale == 3 {
			number = rapid.Custom(func(t *rapid.T) float32 { return float32(rapid.Float32Range(-1e38, 1e38).Draw(t, "x")) + 0 })
		}
		return rapid.SliceOfN(number, 1, 40).Draw(t, "values")
	})
}

// TestTallyProperty checks that the result is plain arithmetic over the readings, and the same for any order and any
// division into single readings and hours. Hours may leave it open; then the single readings decide.
func TestTallyProperty(t *testing.T) {
	t.Parallel()
	decided := 0
	rapid.Check(t, func(t *rapid.T) {
		values := sensorValues().Draw(t, "values")
		want := roomsensor.Summary{Min: slices.Min(values), Max: slices.Max(values), Mean: plainMean(values), Count: len(values)}
		order := rapid.Permutation(values).Draw(t, "order")

		var single, hours aggregate.Tally
		for rest := order; len(rest) > 0; {
			n := rapid.IntRange(1, min(12, len(rest))).Draw(t, "n")
			if rapid.Bool().Draw(t, "as an hour") {
				hours.AddHour(&roomsensor.Stats{roomsensor.Temp: hourOf(rest[:n])}, n, n)
			} else {
				addAll(&hours, rest[:n])
			}
			addAll(&single, rest[:n])
			rest = rest[n:]
		}
		got, ok := single.Aggregate(roomsensor.Window{}, 0)
		require.True(t, ok)
		require.Equal(t, want, got.Metrics[roomsensor.Temp])
		require.Equal(t, len(values), got.Present)
		if got, ok = hours.Aggregate(roomsensor.Window{}, 0); ok {
			decided++
			require.Equal(t, want, got.Metrics[roomsensor.Temp])
			require.Equal(t, len(values), got.Present)
		}
	})
	require.Positive(t, decided)
}

func addAll(t *aggregate.Tally, values []float32) {
	for _, x := range values {
		var v roomsensor.Values
		v.Set(roomsensor.Temp, x)
		t.Add(&v, true)
	}
}

// TestTallyHours checks which hours determine a result without their readings. Those of real sensors do.
func TestTallyHours(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values []float32
		ok     bool
	}{
		"co2":              {[]float32{412, 613, 100000}, true},
		"temperatures":     {[]float32{21.4, 21.5, 21.3, 19.99}, true},
		"below zero":       {[]float32{-0.01, -20.5}, true},
		"light":            {[]float32{0.1, 100000, 7.3}, true},
		"darkness":         {[]float32{0, 0, 0}, true},
		"dusk":             {[]float32{0, 0.3, 0.1, 12.7}, true},
		"one value":        {[]float32{1e-45}, true},
		"around zero":      {[]float32{-0.1, 0.2, 0.7}, true},
		"half of a bit":    {[]float32{1, math.Nextafter32(1, 2), 0, 0}, false},
		"lost in the sum":  {[]float32{1e20, 1, -1e20}, false},
		"near half a bit":  {[]float32{0, 1, math.Nextafter32(1, 2), 1e-30, 0, 0, 0, 0}, false},
		"not finite":       {[]float32{1, float32(math.Inf(1))}, false},
		"not a number":     {[]float32{1, float32(math.NaN())}, false},
		"opposed infinity": {[]float32{float32(math.Inf(-1)), float32(math.Inf(1))}, false},
	} {
		var hour aggregate.Tally
		hour.AddHour(&roomsensor.Stats{roomsensor.Lux: hourOf(test.values)}, len(test.values), 0)
		got, ok := hour.Aggregate(roomsensor.Window{}, 0)
		require.Equal(t, test.ok, ok, name)
		if ok {
			require.Equal(t, plainMean(test.values), got.Metrics[roomsensor.Lux].Mean, name)
		}
	}
}

// TestTallyCounts checks what counts (A1.6, A1.7): all readings for the metrics, the expected ones as present.
func TestTallyCounts(t *testing.T) {
	t.Parallel()
	var tally aggregate.Tally
	require.True(t, tally.IsEmpty())
	tally.Add(&roomsensor.Values{}, false)
	require.False(t, tally.IsEmpty(), "a reading without values is one")
	tally.Add(&roomsensor.Values{}, true)
	var v roomsensor.Values
	v.Set(roomsensor.Sound, float32(math.Copysign(0, -1)))
	tally.Add(&v, false)
	tally.AddHour(&roomsensor.Stats{roomsensor.CO2: {Min: 400, Max: 500, Sum: 900, Count: 2}}, 5, 3)
	bucket := roomsensor.Window{From: instant(t, "2026-03-10T10:00:00Z"), To: instant(t, "2026-03-10T11:00:00Z")}
	got, ok := tally.Aggregate(bucket, 12)
	require.True(t, ok)
	require.Equal(t, aggregate.Aggregate{Bucket: bucket, Expected: 12, Present: 4, Metrics: [roomsensor.MetricCount]roomsensor.Summary{
		roomsensor.CO2: {Min: 400, Max: 500, Mean: 450, Count: 2}, roomsensor.Sound: {Count: 1},
	}}, got)
	require.False(t, math.Signbit(float64(got.Metrics[roomsensor.Sound].Min)))
}
