package simulate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

func TestModesSendEverything(t *testing.T) {
	t.Parallel()
	want := distinct(readings(plan(simulate.Backfill, 9, 4)))
	for _, mode := range []simulate.Mode{simulate.Burst, simulate.Duplicate, simulate.WeakSignal} {
		got := readings(plan(mode, 9, 4))
		require.Equal(t, want, distinct(got), "%s", mode)
		require.Greater(t, len(got), len(want), "%s sends nothing twice", mode)
	}
}

func TestBurst(t *testing.T) {
	t.Parallel()
	p := plan(simulate.Burst, 3, 3)
	byUnit := map[string][]time.Time{}
	for _, u := range uploads(p) {
		require.WithinDuration(t, p.Until, u.SentAt, time.Minute, "sent after the reconnect")
		for _, m := range u.Readings {
			byUnit[u.HardwareID] = append(byUnit[u.HardwareID], m.MeasuredAt)
		}
	}
	first := func(i int) time.Time { return byUnit[p.HardwareID(i)][0] }
	require.WithinDuration(t, p.From, first(0), time.Hour, "oldest first")
	require.WithinDuration(t, p.Until, first(1), time.Hour, "newest first")
	mixed := byUnit[p.HardwareID(2)]
	require.False(t, slices.IsSortedFunc(mixed, time.Time.Compare))
}

func TestClockSkew(t *testing.T) {
	t.Parallel()
	right, wrong := plan(simulate.Backfill, 5, 2), plan(simulate.ClockSkew, 5, 2)
	for i := range right.Devices {
		truth := slices.Collect(right.Device(i).Measurements(right.From, right.Until))
		var shown []roomsensor.Measurement
		for _, u := range uploads(wrong) {
			if u.HardwareID == wrong.HardwareID(i) {
				shown = append(shown, u.Readings...)
			}
		}
		require.Len(t, shown, len(truth))
		least, most := skewOf(i)
		for k := range shown {
			require.Equal(t, truth[k].Values, shown[k].Values)
			if i == 4 {
				require.Equal(t, 1970, shown[k].MeasuredAt.Year())
				continue
			}
			skew := shown[k].MeasuredAt.Sub(truth[k].MeasuredAt)
			require.True(t, least <= skew && skew <= most, "device %d is off by %s", i, skew)
		}
	}
}

// skewOf returns the range of the clock error of a device within two days.
func skewOf(i int) (least, most time.Duration) {
	const drift = 40 * time.Second
	switch i {
	case 0:
		return time.Minute - drift, 8*time.Minute + drift
	case 1:
		return -8*time.Minute - drift, -time.Minute + drift
	case 2:
		return -12*time.Hour - drift, -time.Hour + drift
	}
	return time.Hour - drift, 12*time.Hour + drift
}

func TestMissingMetric(t *testing.T) {
	t.Parallel()
	p := plan(simulate.MissingMetric, 2, 10)
	whole := distinct(readings(plan(simulate.Backfill, 2, 10)))
	total, empty, present := 0, 0, map[string]*[roomsensor.MetricCount]int{}
	for _, s := range readings(p) {
		total++
		if present[s.unit] == nil {
			present[s.unit] = &[roomsensor.MetricCount]int{}
		}
		if s.Values.Mask() == 0 {
			empty++
		}
		for _, m := range roomsensor.Metrics {
			if _, ok := s.Values.Get(m); ok {
				present[s.unit][m]++
			}
		}
	}
	require.Len(t, whole, total, "no reading is omitted")
	require.InDelta(t, 0.01, float64(empty)/float64(total), 0.006)
	require.Zero(t, present[p.HardwareID(0)][roomsensor.CO2], "device 0 has no CO2 sensor")
	require.InDelta(t, 0.89*float64(total)/2, present[p.HardwareID(1)][roomsensor.CO2], 0.03*float64(total))
}

func TestWeakSignal(t *testing.T) {
	t.Parallel()
	var late time.Duration
	unknown := 0
	all := uploads(plan(simulate.WeakSignal, 3, 7))
	for _, u := range all {
		late = max(late, u.SentAt.Sub(u.Readings[0].MeasuredAt))
		if u.Signal == nil {
			unknown++
			continue
		}
		require.LessOrEqual(t, u.Signal.RSSI, -104)
		require.LessOrEqual(t, u.Signal.Bars, 1)
	}
	require.Greater(t, late, 6*time.Hour)
	require.NotZero(t, unknown)
	require.Less(t, unknown, len(all)/3)
}
