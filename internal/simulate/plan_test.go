package simulate_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
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

// An upload in every mode is one that the service takes (decision 41).
func TestUploadsAreInTheWireFormat(t *testing.T) {
	t.Parallel()
	for _, mode := range history {
		for line := range bytes.Lines(lines(plan(mode, 5, 2))) {
			var u struct {
				HardwareID string `json:"hardware_id"`
				SentAt     string `json:"sent_at"`
				Firmware   string `json:"firmware_version"`
				Signal     *struct {
					RSSI int `json:"rssi_dbm"`
					Bars int `json:"bars"`
				} `json:"signal"`
				Readings []map[string]any `json:"readings"`
			}
			decoder := json.NewDecoder(bytes.NewReader(line))
			decoder.DisallowUnknownFields()
			require.NoError(t, decoder.Decode(&u))
			require.True(t, roomsensor.IsHardwareID(u.HardwareID))
			require.Regexp(t, `^\d+\.\d+\.\d+$`, u.Firmware)
			_, ok := roomsensor.ParseTime(u.SentAt)
			require.True(t, ok, u.SentAt)
			if u.Signal != nil {
				require.Less(t, u.Signal.RSSI, 0)
				require.True(t, 0 <= u.Signal.Bars && u.Signal.Bars <= 5)
			}
			require.NotEmpty(t, u.Readings)
			require.LessOrEqual(t, len(u.Readings), roomsensor.MaxUploadReadings)
			require.Less(t, len(line), roomsensor.MaxUploadBytes)
			for _, reading := range u.Readings {
				_, ok := roomsensor.ParseTime(reading["measured_at"].(string))
				require.True(t, ok)
			}
		}
	}
}

// What is printed reads back as what was measured.
func TestUploadsPrintWhatWasMeasured(t *testing.T) {
	t.Parallel()
	for _, u := range uploads(plan(simulate.MissingMetric, 3, 1)) {
		var printed struct{ Readings []map[string]any }
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
