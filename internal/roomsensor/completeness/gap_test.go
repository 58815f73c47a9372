package completeness_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/completeness"
)

// TestGapSearch checks that the readings and the gaps of a device partition its expected buckets, and that a gap is
// never next to another one.
func TestGapSearch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		expected := completeness.Expected(window(t, now), installations(t, now), now)
		readings := readingsAround(t, expected)
		var gaps []roomsensor.Window
		search := completeness.NewGapSearch(expected)
		keep := func(gap roomsensor.Window, ok bool) {
			require.Equal(t, ok, !gap.Empty())
			if ok {
				gaps = append(gaps, gap)
			}
		}
		for _, bucket := range slices.Backward(readings) {
			keep(search.Reading(bucket))
		}
		keep(search.End())
		require.True(t, search.Rest().Empty())

		count := map[time.Time]int{} // how often each expected bucket occurs
		for _, bucket := range readings {
			if !bucket.Before(expected.From) && bucket.Before(expected.To) {
				count[bucket]++
			}
		}
		for i, gap := range gaps {
			for _, bucket := range bucketsIn(gap) {
				count[bucket]++
			}
			require.True(t, i == 0 || gap.To.Before(gaps[i-1].From), "newest first, with a reading between them")
		}
		require.Len(t, count, expected.Buckets())
		for bucket, n := range count {
			require.Equal(t, 1, n, bucket)
		}
	})
}

// bucketsIn lists the buckets of a window that begins with one.
func bucketsIn(w roomsensor.Window) (buckets []time.Time) {
	for bucket := w.From; bucket.Before(w.To); bucket = bucket.Add(5 * time.Minute) {
		buckets = append(buckets, bucket)
	}
	return buckets
}

// readingsAround draws the buckets with a reading in and around a window, ascending.
func readingsAround(t *rapid.T, w roomsensor.Window) (buckets []time.Time) {
	from := roomsensor.BucketOf(w.From).Add(-10 * time.Minute)
	count := max(0, int(w.To.Sub(from)/roomsensor.BucketLength)) + 2
	present := rapid.SliceOfN(rapid.Bool(), count, count).Draw(t, "present")
	for i, is := range present {
		if is {
			buckets = append(buckets, from.Add(time.Duration(i)*roomsensor.BucketLength))
		}
	}
	return buckets
}
