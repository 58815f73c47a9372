package simulate_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
	"roomsensor/internal/upload"
)

// history lists the modes that send a window of the past.
var history = simulate.Modes[1:]

// Same seed, same bytes, on any day: a changed hash is a changed generator,
// which every user of a seed will notice.
func TestSameSeedSameBytes(t *testing.T) {
	t.Parallel()
	golden := map[simulate.Mode]string{
		simulate.Backfill:      "23bba27858272c2c",
		simulate.Burst:         "8010ced4f45ee611",
		simulate.ClockSkew:     "8d84371b4b7c9f9d",
		simulate.Duplicate:     "481237209cfecbdf",
		simulate.MissingMetric: "63f65914748889d7",
		simulate.WeakSignal:    "9c974a607ce1a706",
	}
	require.Len(t, golden, len(history))
	for _, mode := range history {
		sum := sha256.Sum256(lines(plan(mode, 5, 2)))
		require.Equal(t, golden[mode], hex.EncodeToString(sum[:8]), "%s", mode)
	}
}

// What is printed reads back as what was measured.
func TestUploadsPrintWhatWasMeasured(t *testing.T) {
	t.Parallel()
	for _, u := range uploads(plan(simulate.MissingMetric, 3, 1)) {
		var printed struct {
			Readings []map[string]any `json:"readings"`
		}
		require.NoError(t, json.Unmarshal(u.AppendJSON(nil), &printed))
		require.Len(t, printed.Readings, len(u.Readings))
		for i, reading := range printed.Readings {
			require.Equal(t, roomsensor.FormatTime(u.Readings[i].MeasuredAt), reading["measured_at"])
			for _, m := range roomsensor.Metrics {
				x, ok := u.Readings[i].Values.Get(m)
				cell, there := reading[m.String()]
				require.Equal(t, !u.LeaveOut || ok, there)
				if ok {
					require.Equal(t, x, float32(cell.(float64)))
				} else {
					require.Nil(t, cell)
				}
			}
		}
	}
}

func TestBackfillSendsEverythingInOrder(t *testing.T) {
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

// The window is cut to whole buckets, so that nothing is of the future.
func TestPlanEndsWithTheLastWholeBucket(t *testing.T) {
	t.Parallel()
	p := plan(simulate.Backfill, 3, 1)
	p.Until = midnight.Add(7 * time.Minute)
	latest := slices.MaxFunc(readings(p), func(a, b sent) int { return a.MeasuredAt.Compare(b.MeasuredAt) })
	require.True(t, latest.MeasuredAt.Before(midnight.Add(5*time.Minute)))
	require.False(t, latest.MeasuredAt.Before(midnight))
	p.From = p.Until
	require.Empty(t, readings(p))
}

// What a device sends after a time offline is all of it, whatever the window.
func TestDeviceUploadsHoldTheWholeWindow(t *testing.T) {
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

// The parser of the service finds nothing to complain of (decision 41), but
// for clocks that are far ahead.
func TestUploadsAreTaken(t *testing.T) {
	t.Parallel()
	for _, mode := range history {
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

// A consumer may stop at any upload.
func TestUploadsCanBeLeft(t *testing.T) {
	t.Parallel()
	for _, mode := range history {
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
