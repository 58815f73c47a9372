package roomsensor_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
)

func drawMeasurement(t *rapid.T, label string) roomsensor.Measurement {
	// Few instants and few numbers, so that ties are common.
	m := roomsensor.Measurement{MeasuredAt: now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, label)) * time.Second)}
	for _, metric := range roomsensor.Metrics {
		if x := rapid.IntRange(-2, 2).Draw(t, label); x != -2 {
			m.Values.Set(metric, float32(x))
		}
	}
	return m
}

func TestUniteIsOrderFree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawMeasurement(t, "a"), drawMeasurement(t, "b"), drawMeasurement(t, "c")
		require.Equal(t, roomsensor.Unite(a, b), roomsensor.Unite(b, a), "commutative")
		require.Equal(t, a, roomsensor.Unite(a, a), "idempotent")
		require.Equal(t,
			roomsensor.Unite(roomsensor.Unite(a, b), c),
			roomsensor.Unite(a, roomsensor.Unite(b, c)), "associative")
	})
}

func TestUnite(t *testing.T) {
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
			"the later one wins as a whole, nulls included",
			measure(now, 900, 30), measure(now.Add(time.Microsecond), 400, nan), measure(now.Add(time.Microsecond), 400, nan),
		},
		{"a null never erases a value of the same measurement", measure(now, 900, nan), measure(now, nan, 20), measure(now, 900, 20)},
		{"the greater of two values stays", measure(now, 900, -5), measure(now, 901, -6), measure(now, 901, -5)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, roomsensor.Unite(test.a, test.b))
		})
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

func TestNumbersReadBackAndHaveNoExponent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float32().Draw(t, "x")
		printed := string(roomsensor.AppendNumber(nil, x))
		require.NotContains(t, printed, "e")
		back, err := strconv.ParseFloat(printed, 32)
		require.NoError(t, err)
		require.Equal(t, x, float32(back))
	})
}

// FuzzNumber holds numbers to decision 1: they read back as they are stored,
// in the shortest form, which is the standard library's, and without an
// exponent.
func FuzzNumber(f *testing.F) {
	for _, x := range []float32{0, 21.4, 0.1, 99999.95, 999.9995, math.MaxFloat32, math.SmallestNonzeroFloat32, -90, 16777216, 1e-7, 123456.79} {
		f.Add(math.Float32bits(x))
	}
	f.Fuzz(func(t *testing.T, bits uint32) {
		x := math.Float32frombits(bits)
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return // No number.
		}
		text := string(roomsensor.AppendNumber(nil, x))
		require.Equal(t, standard(x), text)
		require.Regexp(t, `^-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?$`, text)
		back, err := strconv.ParseFloat(text, 32)
		require.NoError(t, err)
		require.Equal(t, bits, math.Float32bits(float32(back)), text)
	})
}
