package simulate_test

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
	"roomsensor/internal/upload"
)

// historyModes lists the modes that send a window of the past.
var historyModes = simulate.Modes[1:]

// The same seed gives the same bytes on any day. A changed hash means a changed generator, which affects all users of a
// seed.
func TestUploadsGolden(t *testing.T) {
	t.Parallel()
	golden := map[simulate.Mode]string{
		simulate.Backfill:      "23bba27858272c2c",
		simulate.Burst:         "8010ced4f45ee611",
		simulate.ClockSkew:     "8d84371b4b7c9f9d",
		simulate.Duplicate:     "481237209cfecbdf",
		simulate.MissingMetric: "93b3e8854262f6c5",
		simulate.WeakSignal:    "9c974a607ce1a706",
	}
	require.Len(t, golden, len(historyModes))
	for _, mode := range historyModes {
		sum := sha256.Sum256(lines(plan(mode, 5, 2)))
		require.Equal(t, golden[mode], hex.EncodeToString(sum[:8]), "%s", mode)
	}
}

func TestBackfill(t *testing.T) {
	t.Parallel()
	p := plan(simulate.Backfill, 4, 3)
	byUnit := map[string][]roomsensor.Measurement{}
	for _, u := range uploads(p) {
		byUnit[u.HardwareID] = append(byUnit[u.HardwareID], u.Readings...)
		require.False(t, u.SentAt.Before(u.Readings[len(u.Readings)-1].MeasuredAt))
	}
	for i := range p.Devices {
		want := slices.Collect(p.Device(i).Measurements(p.From, p.Until))
		require.Equal(t, want, byUnit[p.HardwareID(i)])
	}
	require.Equal(t, 4*3*288, p.Measurements())
}

// The window is truncated to whole buckets, so that no reading is in the future.
func TestPlanWindow(t *testing.T) {
	t.Parallel()
	p := plan(simulate.Backfill, 3, 1)
	p.Until = midnight.Add(7 * time.Minute)
	latest := slices.MaxFunc(readings(p), func(a, b sent) int { return a.MeasuredAt.Compare(b.MeasuredAt) })
	require.True(t, latest.MeasuredAt.Before(midnight.Add(5*time.Minute)))
	require.False(t, latest.MeasuredAt.Before(midnight))
	p.From = p.Until
	require.Empty(t, readings(p))
}

// After an outage, a device sends all its measurements in the window.
func TestDeviceUploads(t *testing.T) {
	t.Parallel()
	device := fleet(3).Device(1)
	rapid.Check(t, func(t *rapid.T) {
		from := midnight.Add(time.Duration(rapid.IntRange(0, 9*86400).Draw(t, "from")) * time.Second)
		until := from.Add(time.Duration(rapid.IntRange(0, 5*86400).Draw(t, "length")) * time.Second)
		var got []roomsensor.Measurement
		for u := range device.Uploads(from, until) {
			require.Equal(t, device.HardwareID, u.HardwareID)
			require.LessOrEqual(t, len(u.Readings), 289)
			got = append(got, u.Readings...)
		}
		require.Equal(t, slices.Collect(device.Measurements(from, until)), got)
	})
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
