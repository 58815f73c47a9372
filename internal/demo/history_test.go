package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestUploadsAroundReplacement checks that a device's readings come from the first unit until its replacement and from
// the second afterwards, without a gap or an overlap.
func TestUploadsAroundReplacement(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.May, 6, 10, 23, 0, 0, time.UTC)
	d := &demo{state: newState(now)}
	replaced := 0
	for i := range demoDevices {
		readings := map[string]int{}
		for u := range d.uploads(i, now.Add(-30*day), now) {
			readings[u.HardwareID] += len(u.Readings)
			for _, m := range u.Readings {
				before := m.MeasuredAt.Before(d.replacedAt(i))
				require.Equal(t, before, u.HardwareID == d.state.fleet().HardwareID(i))
			}
		}
		if demoDevices[i].replaced == 0 {
			require.Len(t, readings, 1)
			continue
		}
		replaced++
		require.Greater(t, readings[d.state.fleet().HardwareID(i)], 5*288*9/10)
		require.Greater(t, readings[d.state.replacement(i)], 24*288*9/10)
	}
	require.Equal(t, 1, replaced)
}
