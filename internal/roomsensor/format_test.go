package roomsensor_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
)

func TestParseTime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-01-31T08:00:00Z":           "2026-01-31T08:00:00Z",
		"2026-01-31T08:00:00.5Z":         "2026-01-31T08:00:00.5Z",
		"2026-01-31T08:00:00.000000Z":    "2026-01-31T08:00:00Z",
		"2026-01-31T08:00:00.123456Z":    "2026-01-31T08:00:00.123456Z",
		"2026-01-31T08:00:00.123456789Z": "2026-01-31T08:00:00.123456Z",
		"2024-02-29T23:59:59Z":           "2024-02-29T23:59:59Z",
		"0001-01-01T00:00:00Z":           "0001-01-01T00:00:00Z",
	} {
		at, ok := roomsensor.ParseTime(text)
		require.True(t, ok, text)
		require.Equal(t, want, roomsensor.FormatTime(at))
	}
}

func TestParseTimeInvalid(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "Z", "2026-01-31", "2026-01-31T08:00:00", "2026-01-31T08:00:00+00:00", "2026-01-31T08:00:00-05:00",
		"2026-01-31t08:00:00Z", "2026-01-31T08:00:00z", "2026-01-31 08:00:00Z", "2026-01-31T8:00:00Z",
		"2026-01-31T08:00Z", "2026-01-31T08:00:00.Z", "2026-01-31T08:00:00,5Z", "2026-01-31T08:00:00.1234567890Z",
		"2026-02-30T08:00:00Z", "2026-13-01T08:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T08:60:00Z",
		"2026-01-31T08:00:60Z", "+2026-01-31T08:00:00Z", "02026-01-31T08:00:00Z", "1769846400", "now",
		"2026-01-31T08:00:00Z ", " 2026-01-31T08:00:00Z", "2026-01-31T08:00:00.5", "２026-01-31T08:00:00Z",
	} {
		_, ok := roomsensor.ParseTime(text)
		require.False(t, ok, text)
	}
}

// TestFormatTimeRoundTrip checks that ParseTime returns the time that FormatTime printed.
func TestFormatTimeRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(-62135596800_000000, roomsensor.Forever.UnixMicro()).Draw(t, "micros")
		at := time.UnixMicro(micros).UTC()
		back, ok := roomsensor.ParseTime(roomsensor.FormatTime(at))
		require.True(t, ok)
		require.True(t, back.Equal(at))
	})
}

func FuzzParseTime(f *testing.F) {
	f.Add("2026-01-31T08:00:00.123456Z")
	f.Add("2026-01-31T8:00:00Z")
	f.Fuzz(func(t *testing.T, text string) {
		at, ok := roomsensor.ParseTime(text)
		if !ok {
			return
		}
		again, ok := roomsensor.ParseTime(roomsensor.FormatTime(at))
		require.True(t, ok)
		require.True(t, again.Equal(at))
	})
}

// TestAppendTime checks the form of times: UTC, no fraction if it is zero, otherwise as many digits as needed, at most
// six (decision 1).
func TestAppendTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Int64Range(-70_000_000_000, 260_000_000_000).Draw(t, "seconds")
		nanoseconds := rapid.OneOf(rapid.Int64Range(0, 999_999_999), rapid.Just[int64](0), rapid.Just[int64](120_000_000))
		at := time.Unix(seconds, nanoseconds.Draw(t, "nanoseconds"))
		zone := time.FixedZone("", rapid.IntRange(-14*3600, 14*3600).Draw(t, "zone"))
		require.Equal(t, at.UTC().Format("2006-01-02T15:04:05.999999Z"), string(roomsensor.AppendTime(nil, at.In(zone))))
	})
}

// standard returns the form that AppendNumber must return.
func standard(x float32) string { return strconv.FormatFloat(float64(x), 'f', -1, 32) }

// TestAppendNumber compares numbers with the standard library (decision 1): those around the limits of the quick paths
// for few digits, and seeded draws of the numbers that a sensor with up to three decimals sends. It also checks the
// neighbors of each number, which need all digits.
func TestAppendNumber(t *testing.T) {
	t.Parallel()
	check := func(x float32) {
		for _, x := range []float32{x, -x, math.Nextafter32(x, 0), math.Nextafter32(-x, -math.MaxFloat32)} {
			if got, want := string(roomsensor.AppendNumber(nil, x)), standard(x); got != want {
				require.Equal(t, want, got)
			}
		}
	}
	scales := []float64{1, 10, 100, 1000}
	for _, limit := range []int{0, 10, 100, 1000, 10_000, 100_000, 1_000_000, 1 << 24} {
		for n := max(0, limit-1000); n <= limit+1000; n++ {
			for _, scale := range scales {
				check(float32(float64(n) / scale))
			}
		}
	}
	for _, x := range []float32{math.SmallestNonzeroFloat32, 1e-7, 0x1p-126, 0.0005, 0.00049999997, 3e30} {
		check(x)
	}
	const seed = 1
	draw := rand.New(rand.NewPCG(seed, 0))
	for range 100_000 {
		check(float32(float64(draw.IntN(1_000_100)) / scales[draw.IntN(len(scales))]))
	}
}

// TestAppendNumberRoundTrip checks that a number has no exponent and parses to the same number.
func TestAppendNumberRoundTrip(t *testing.T) {
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

// FuzzAppendNumber checks any 32-bit number against the standard library: the shortest form without an exponent that
// parses to the same bits (decision 1).
func FuzzAppendNumber(f *testing.F) {
	for _, x := range []float32{0, 21.4, 0.1, 99999.95, 999.9995, math.MaxFloat32, math.SmallestNonzeroFloat32, -90, 16777216, 1e-7, 123456.79} {
		f.Add(math.Float32bits(x))
	}
	f.Fuzz(func(t *testing.T, bits uint32) {
		x := math.Float32frombits(bits)
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return // Values never holds these.
		}
		text := string(roomsensor.AppendNumber(nil, x))
		require.Equal(t, standard(x), text)
		require.Regexp(t, `^-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?$`, text)
		back, err := strconv.ParseFloat(text, 32)
		require.NoError(t, err)
		require.Equal(t, bits, math.Float32bits(float32(back)), text)
	})
}
