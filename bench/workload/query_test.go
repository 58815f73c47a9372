package workload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/bench/fleet"
	"roomsensor/internal/roomsensor"
)

func TestSplitPage(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][2]string{
		`{"data":[{"a":1},{"a":2}],"next_cursor":"x"}`:      {`[{"a":1},{"a":2}]`, "x"},
		`{"data":[],"next_cursor":null}`:                    {"[]", ""},
		`{"data":["],\"next_cursor\":"],"next_cursor":"x"}`: {`["],\"next_cursor\":"]`, "x"},
	} {
		items, cursor, err := splitPage([]byte(body))
		require.NoError(t, err, body)
		require.Equal(t, want, [2]string{string(items), cursor})
	}
	for _, body := range []string{"", `{"error":{}}`, `{"data":[]}`, `{"data":[],"next_cursor":`} {
		_, _, err := splitPage([]byte(body))
		require.Error(t, err, body)
	}
}

// TestAnswer compares the statistics of two hours with those of their readings.
func TestAnswer(t *testing.T) {
	t.Parallel()
	s := &Suite{}
	s.Fleet = fleet.Fleet{
		Seed: 1, Devices: 2, Deep: 1, Days: 5, Recent: 4, Until: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC),
	}
	recent := s.Fleet.RecentFrom()
	answer := s.Answer(&Aggregation{
		[]int{0, 1}, roomsensor.Window{From: recent.Add(-time.Hour), To: recent.Add(time.Hour)}, time.Hour,
	})
	require.Len(t, answer, 3*len(roomsensor.Metrics), "the second device has no reading in the first hour")
	got := answer[BucketMetric{s.Fleet.DeviceID(1), recent.Unix(), roomsensor.CO2}]
	require.Equal(t, 12, got.Count)
	sum := float64(0)
	for at := recent; at.Before(recent.Add(time.Hour)); at = at.Add(roomsensor.BucketLength) {
		reading := s.Fleet.Reading(1, at)
		x, _ := reading.Values.Get(roomsensor.CO2)
		require.True(t, got.Min <= x && x <= got.Max, x)
		sum += float64(x)
	}
	require.InDelta(t, sum/12, got.Mean, 1e-3)
}
