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

// TestMakeLoad parses the uploads of every order: each device sends each of its readings, in its order.
func TestMakeLoad(t *testing.T) {
	t.Parallel()
	for _, order := range orders {
		o := small()
		o.Order = order
		l := makeLoad(&o, end)
		require.Equal(t, l, makeLoad(&o, end), "the same options give the same load")
		sent := map[*ledger.Unit][]time.Time{}
		seen := map[int]bool{}
		readings := 0
		for _, r := range l.requests {
			u := r.Uploads[0]
			require.LessOrEqual(t, len(u.Text), roomsensor.MaxUploadBytes)
			parsed, refusal := upload.Parse(u.Text, u.Unit.HardwareID, end)
			require.Nil(t, refusal)
			require.Len(t, parsed.Readings, len(u.Readings))
			readings += len(parsed.Readings)
			for i, reading := range parsed.Readings {
				require.Empty(t, reading.Problem)
				require.Equal(t, u.Readings[i].MeasuredAt, reading.MeasuredAt)
				if !seen[u.ID] {
					sent[u.Unit] = append(sent[u.Unit], reading.MeasuredAt)
				}
			}
			seen[u.ID] = true
		}
		require.Equal(t, l.readings, readings)
		distinct := 0
		for i, unit := range l.units {
			requireOrder(t, order, i, sent[unit])
			distinct += len(sent[unit])
		}
		require.Equal(t, l.distinct, distinct)
	}
}

func requireOrder(t *testing.T, order string, device int, got []time.Time) {
	t.Helper()
	if order == Mixed {
		order = orders[1+device%3]
	}
	ascending := slices.IsSortedFunc(got, time.Time.Compare)
	descending := slices.IsSortedFunc(got, func(a, b time.Time) int { return b.Compare(a) })
	require.Equal(t, order == oldestFirst, ascending)
	require.Equal(t, order == newestFirst, descending)
}
