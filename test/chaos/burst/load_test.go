package burst

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
	"roomsensor/test/ledger"
)

var end = time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)

// TestMakeLoad parses the uploads: each device sends each of its readings, in one of three orders.
func TestMakeLoad(t *testing.T) {
	t.Parallel()
	o := small()
	l := makeLoad(&o, end)
	require.Equal(t, l, makeLoad(&o, end), "the same options give the same load")
	sent := map[*ledger.Unit][]time.Time{}
	seen := map[ledger.Key]bool{} // by the first reading of an upload
	readings := 0
	for _, r := range l.requests {
		u := r.Uploads[0]
		require.LessOrEqual(t, len(u.Text), roomsensor.MaxUploadBytes)
		parsed, refusal := upload.Parse(u.Text, u.Unit.HardwareID, end)
		require.Nil(t, refusal)
		require.Len(t, parsed.Readings, len(u.Readings))
		readings += len(parsed.Readings)
		first := ledger.KeyOf(u.Unit.Device, u.Readings[0].Bucket())
		for i, reading := range parsed.Readings {
			require.Empty(t, reading.Problem)
			require.Equal(t, u.Readings[i].MeasuredAt, reading.MeasuredAt)
			if !seen[first] {
				sent[u.Unit] = append(sent[u.Unit], reading.MeasuredAt)
			}
		}
		seen[first] = true
	}
	require.Equal(t, l.readings, readings)
	require.Less(t, len(seen), len(l.requests), "some uploads are sent twice")
	distinct := 0
	for i, unit := range l.units {
		got := sent[unit]
		require.Equal(t, i%3 == 0, slices.IsSortedFunc(got, time.Time.Compare))
		require.Equal(t, i%3 == 1, slices.IsSortedFunc(got, func(a, b time.Time) int { return b.Compare(a) }))
		distinct += len(got)
	}
	require.Equal(t, l.distinct, distinct)
}
