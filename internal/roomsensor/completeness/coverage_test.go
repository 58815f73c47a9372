package completeness_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/completeness"
)

// TestCoverageCount compares the coverage of readings in any order with a plain count over the expected buckets.
func TestCoverageCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		expected := completeness.Expected(window(t, now), installations(t, now), now)
		count := completeness.NewCoverageCount(expected)
		masks := map[time.Time]uint8{}
		for _, bucket := range rapid.Permutation(readingsAround(t, expected)).Draw(t, "order") {
			masks[bucket] = rapid.Uint8Range(0, 31).Draw(t, "mask")
			count.Add(bucket, masks[bucket])
		}
		require.Equal(t, plainCoverage(expected, masks), count.Coverage())
	})
}

// plainCoverage counts bucket by bucket. masks has the valid_mask of each reading.
func plainCoverage(expected roomsensor.Window, masks map[time.Time]uint8) (c completeness.Coverage) {
	var gap roomsensor.Window
	for _, bucket := range bucketsIn(expected) {
		c.Expected++
		mask, present := masks[bucket]
		if !present {
			if gap.To != bucket {
				gap.From = bucket
			}
			gap.To = bucket.Add(5 * time.Minute)
			if c.LongestGap == nil || gap.Buckets() >= c.LongestGap.Buckets() {
				c.LongestGap = new(gap)
			}
			continue
		}
		c.Present++
		if c.First == nil {
			c.First = new(bucket)
		}
		c.Last = new(bucket)
		for _, m := range roomsensor.Metrics {
			c.Metrics[m] += int(mask >> m & 1)
		}
	}
	return c
}

func TestCoverageRatio(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		present, expected int
		want              string
	}{
		{0, 0, "null"},
		{0, 1, "0"},
		{288, 288, "1"},
		{287, 288, "0.9965"},
		{144, 288, "0.5"},
		{2, 3, "0.6666"},
		{999_999, 1_000_000, "0.9999"},
		{1, 10_000, "0.0001"},
		{1, 10_001, "0"},
		{101, 10_000, "0.0101"},
		{21, 100, "0.21"},
	} {
		c := completeness.Coverage{Present: test.present, Expected: test.expected}
		require.Equal(t, test.want, string(c.AppendRatio(nil)), "%d / %d", test.present, test.expected)
	}
}
