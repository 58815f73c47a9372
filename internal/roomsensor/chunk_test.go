package roomsensor

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFittingChunkInterval has fleets from the table of docs/operate/timescaledb.md: a quarter of 16 GiB is 4 GiB.
func TestFittingChunkInterval(t *testing.T) {
	t.Parallel()
	const memory = 4 << 30
	for devices, days := range map[int64]int{
		0: 7, 1000: 7, 30_800: 7, 31_000: 3, 72_000: 3, 72_100: 1, 216_000: 1, 10_000_000: 1,
	} {
		require.Equal(t, time.Duration(days)*24*time.Hour, FittingChunkInterval(DailyIndexBytes(devices), memory), devices)
	}
}

func TestChunksNew(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return time.Unix(0, 0).UTC().AddDate(0, 0, n) }
	c := Chunks{Interval: 7 * 24 * time.Hour, Ranges: []Window{{From: day(7), To: day(14)}, {From: day(30), To: day(32)}}}
	for name, test := range map[string]struct{ want, buckets []time.Time }{
		"no readings":                     {},
		"in existing chunks":              {nil, []time.Time{day(7), day(14).Add(-time.Second), day(31)}},
		"before, between and after":       {[]time.Time{day(0), day(14), day(42)}, []time.Time{day(42), day(6), day(14)}},
		"two in one interval":             {[]time.Time{day(14)}, []time.Time{day(14), day(31), day(20)}},
		"on both sides of a shorter one":  {[]time.Time{day(28), day(32)}, []time.Time{day(28), day(29), day(32), day(34)}},
		"the end of a chunk is exclusive": {[]time.Time{day(32)}, []time.Time{day(32)}},
	} {
		require.Equal(t, test.want, c.New(slices.Values(test.buckets)), name)
	}
}
