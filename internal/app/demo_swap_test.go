package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Before its swap a device's readings come from the first unit, from then on
// from the second, without a gap and without an overlap.
func TestDemoDeviceSendsWithTheUnitOfTheTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.May, 6, 10, 23, 0, 0, time.UTC)
	d := &demo{state: newDemoState(now)}
	swapped := 0
	for i := range demoCast {
		readings := map[string]int{}
		for u := range d.uploads(i, now.Add(-30*demoDay), now) {
			readings[u.HardwareID] += len(u.Readings)
			for _, m := range u.Readings {
				before := m.MeasuredAt.Before(d.swappedAt(i))
				require.Equal(t, before, u.HardwareID == d.state.fleet().HardwareID(i))
			}
		}
		if demoCast[i].swapped == 0 {
			require.Len(t, readings, 1)
			continue
		}
		swapped++
		require.Greater(t, readings[d.state.fleet().HardwareID(i)], 5*288*9/10)
		require.Greater(t, readings[d.state.replacement(i)], 24*288*9/10)
	}
	require.Equal(t, 1, swapped)
}
