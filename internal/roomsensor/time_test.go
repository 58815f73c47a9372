package roomsensor_test

import (
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

func TestParseTimeRefuses(t *testing.T) {
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

func TestTimesReadBackAsPrinted(t *testing.T) {
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

// Decision 1: no fraction where it is zero, else as many digits as it takes, and
// at most six of them.
func TestTimesHaveAtMostMicroseconds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-70_000_000_000, 260_000_000_000).Draw(t, "seconds"), rapid.OneOf(rapid.Int64Range(0, 999_999_999), rapid.Just[int64](0), rapid.Just[int64](120_000_000)).Draw(t, "nanoseconds"))
		zone := time.FixedZone("", rapid.IntRange(-14*3600, 14*3600).Draw(t, "zone"))
		require.Equal(t, at.UTC().Format("2006-01-02T15:04:05.999999Z"), string(roomsensor.AppendTime(nil, at.In(zone))))
	})
}

func BenchmarkAppendTime(b *testing.B) {
	at := time.Date(2026, time.January, 31, 8, 5, 0, 123456000, time.UTC)
	buf := make([]byte, 0, 64)
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			buf = roomsensor.AppendTime(buf[:0], at)
		}
	})
	b.Run("layout", func(b *testing.B) {
		for b.Loop() {
			buf = at.UTC().AppendFormat(buf[:0], "2006-01-02T15:04:05.999999Z")
		}
	})
}
