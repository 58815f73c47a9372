package simulate_test

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
	"roomsensor/internal/upload"
)

// historyModes lists the modes that send a window of the past.
var historyModes = simulate.Modes[1:]

func plan(mode simulate.Mode, devices, days int) *simulate.Plan {
	return &simulate.Plan{
		Fleet: fleet(devices), Mode: mode,
		From: midnight.Add(-time.Duration(days) * day), Until: midnight,
	}
}

// uploads returns copies of the uploads of a plan.
func uploads(p *simulate.Plan) (all []simulate.Upload) {
	for u := range p.Uploads() {
		c := *u
		c.Readings = slices.Clone(u.Readings)
		all = append(all, c)
	}
	return all
}

// readings returns everything that a plan sends, in order, by unit.
func readings(p *simulate.Plan) map[string][]roomsensor.Measurement {
	byUnit := map[string][]roomsensor.Measurement{}
	for u := range p.Uploads() {
		byUnit[u.HardwareID] = append(byUnit[u.HardwareID], u.Readings...)
	}
	return byUnit
}

// The same seed gives the same bytes on any day. A changed hash means a changed generator, which affects all users of a
// seed.
func TestUploadsGolden(t *testing.T) {
	t.Parallel()
	golden := map[simulate.Mode]string{
		simulate.Backfill:      "32ccb0a92d460561",
		simulate.Burst:         "2f4f9b8b7b7c56fb",
		simulate.ClockSkew:     "8d296b9e5e37ba5f",
		simulate.Duplicate:     "5385aa9fec6b1a4f",
		simulate.MissingMetric: "7fd787f3cbda6b11",
		simulate.WeakSignal:    "d0ca2fceb6c3cf01",
	}
	require.Len(t, golden, len(historyModes))
	for _, mode := range historyModes {
		var lines []byte
		for u := range plan(mode, 5, 2).Uploads() {
			lines = append(u.AppendJSON(lines), '\n')
		}
		sum := sha256.Sum256(lines)
		require.Equal(t, golden[mode], hex.EncodeToString(sum[:8]), "%s", mode)
	}
}

// The service accepts all uploads (decision 41), except readings of clocks that are far ahead.
func TestUploadsValid(t *testing.T) {
	t.Parallel()
	for _, mode := range historyModes {
		p := plan(mode, 4, 2)
		for u := range p.Uploads() {
			line := u.AppendJSON(nil)
			require.Less(t, len(line), roomsensor.MaxUploadBytes)
			require.NotContains(t, string(line), "\n")
			require.NotEmpty(t, u.Readings)
			parsed, refusal := upload.Parse(line, u.HardwareID, p.Until)
			require.Nil(t, refusal)
			require.Equal(t, u.Signal == nil, parsed.Signal == nil)
			require.Empty(t, parsed.BadFields)
			require.Len(t, parsed.Readings, len(u.Readings))
			for i, r := range parsed.Readings {
				require.Zero(t, r.BadValues)
				if r.Problem != "" {
					require.Equal(t, simulate.ClockSkew, mode)
					continue
				}
				require.Equal(t, u.Readings[i], r.Measurement)
			}
		}
	}
}

// A consumer can stop at any upload.
func TestUploadsStop(t *testing.T) {
	t.Parallel()
	for _, mode := range historyModes {
		for most := range 12 {
			n := 0
			for range plan(mode, 2, 3).Uploads() {
				if n++; n > most {
					break
				}
			}
			require.LessOrEqual(t, n, most+1)
		}
	}
}

// The window is truncated to whole buckets, so that no reading is in the future.
func TestPlanWindow(t *testing.T) {
	t.Parallel()
	p := plan(simulate.Backfill, 1, 1)
	p.Until = midnight.Add(7 * time.Minute)
	all := readings(p)[p.HardwareID(0)]
	latest := all[len(all)-1]
	require.True(t, latest.MeasuredAt.Before(midnight.Add(5*time.Minute)))
	require.False(t, latest.MeasuredAt.Before(midnight))
	p.From = p.Until
	require.Empty(t, readings(p))
}

func TestModesSendEverything(t *testing.T) {
	t.Parallel()
	p := plan(simulate.Backfill, 9, 4)
	require.Equal(t, 9*4*288, p.Measurements())
	for _, mode := range []simulate.Mode{simulate.Backfill, simulate.Burst, simulate.Duplicate, simulate.WeakSignal} {
		all, repeated := readings(plan(mode, 9, 4)), 0
		for i := range p.Devices {
			got := all[p.HardwareID(i)]
			repeated += len(got)
			if mode != simulate.Backfill {
				slices.SortFunc(got, byTime)
				got = slices.Compact(got)
			}
			repeated -= len(got)
			require.Equal(t, measured(p.Device(i), p.From, p.Until), got, "%s", mode)
		}
		require.Equal(t, mode != simulate.Backfill, repeated > 0, "%s", mode)
	}
}

func byTime(a, b roomsensor.Measurement) int { return a.MeasuredAt.Compare(b.MeasuredAt) }

func TestBurst(t *testing.T) {
	t.Parallel()
	p := plan(simulate.Burst, 3, 3)
	for u := range p.Uploads() {
		require.WithinDuration(t, p.Until, u.SentAt, time.Minute, "sent after the reconnect")
	}
	byUnit := readings(p)
	first := func(i int) time.Time { return byUnit[p.HardwareID(i)][0].MeasuredAt }
	require.WithinDuration(t, p.From, first(0), time.Hour, "oldest first")
	require.WithinDuration(t, p.Until, first(1), time.Hour, "newest first")
	require.False(t, slices.IsSortedFunc(byUnit[p.HardwareID(2)], byTime))
}

func TestClockSkew(t *testing.T) {
	t.Parallel()
	right, wrong := readings(plan(simulate.Backfill, 5, 2)), readings(plan(simulate.ClockSkew, 5, 2))
	const drift = 40 * time.Second // in two days
	for i, skew := range []struct{ least, most time.Duration }{
		{time.Minute, 8 * time.Minute},
		{-8 * time.Minute, -time.Minute},
		{-12 * time.Hour, -time.Hour},
		{time.Hour, 12 * time.Hour},
		{time.Unix(0, 0).Sub(midnight.Add(-2 * day)), time.Unix(0, 0).Sub(midnight.Add(-2 * day))},
	} {
		truth, shown := right[fleet(5).HardwareID(i)], wrong[fleet(5).HardwareID(i)]
		require.Len(t, shown, len(truth))
		for k := range shown {
			require.Equal(t, truth[k].Values, shown[k].Values)
			off := shown[k].MeasuredAt.Sub(truth[k].MeasuredAt)
			require.True(t, skew.least-drift <= off && off <= skew.most+drift, "device %d is off by %s", i, off)
		}
	}
}

func TestMissingMetric(t *testing.T) {
	t.Parallel()
	whole := readings(plan(simulate.Backfill, 2, 10))
	for unit, all := range readings(plan(simulate.MissingMetric, 2, 10)) {
		empty, co2 := 0.0, 0.0
		for _, m := range all {
			if m.Values.Mask() == 0 {
				empty++
			}
			if _, ok := m.Values.Get(roomsensor.CO2); ok {
				co2++
			}
		}
		total := float64(len(all))
		require.Len(t, whole[unit], len(all), "no reading is omitted")
		require.InDelta(t, 0.01*total, empty, 0.006*total)
		if unit == fleet(2).HardwareID(0) {
			require.Zero(t, co2, "device 0 has no CO2 sensor")
		} else {
			require.InDelta(t, 0.89*total, co2, 0.03*total)
		}
	}
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
