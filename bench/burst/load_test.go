package main

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

var end = time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)

func TestTheLoadIsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	for _, order := range orders {
		o := small
		o.Order = order
		l := makeLoad(&o, end)
		sent := 0
		for i, uploads := range l.uploads {
			var got []time.Time
			for n, u := range uploads {
				require.LessOrEqual(t, len(u.text), roomsensor.MaxUploadBytes)
				parsed, refusal := upload.Parse(u.text, u.unit, end)
				require.Nil(t, refusal)
				sent += len(parsed.Readings)
				if n > 0 && string(u.text) == string(uploads[n-1].text) {
					continue // It comes again.
				}
				for _, r := range parsed.Readings {
					require.Empty(t, r.Problem)
					got = append(got, r.MeasuredAt)
				}
			}
			requireOrder(t, order, i, got)
			slices.SortFunc(got, time.Time.Compare)
			require.Len(t, got, len(l.measured[i]))
			for n, m := range l.measured[i] {
				require.Equal(t, m.MeasuredAt, got[n])
			}
		}
		require.Equal(t, l.readings, sent)
		require.Equal(t, l, makeLoad(&o, end), "the same seed, the same load")
	}
}

func requireOrder(t *testing.T, order string, device int, got []time.Time) {
	t.Helper()
	if order == mixed {
		order = orders[1+device%3]
	}
	ascending := slices.IsSortedFunc(got, time.Time.Compare)
	descending := slices.IsSortedFunc(got, func(a, b time.Time) int { return b.Compare(a) })
	require.Equal(t, order == oldestFirst, ascending)
	require.Equal(t, order == newestFirst, descending)
}

func TestAFleetSendsInterleaved(t *testing.T) {
	t.Parallel()
	o := small
	o.Days = 4
	l := makeLoad(&o, end)
	all := l.interleaved()
	for i := range o.Devices {
		require.Equal(t, l.uploads[i][0], all[i])
		require.Equal(t, l.uploads[i][1], all[o.Devices+i])
	}
	n := 0
	for _, uploads := range l.uploads {
		n += len(uploads)
	}
	require.Len(t, all, n)
	require.True(t, json.Valid(all[0].text))
}

func TestSpreadOfNothing(t *testing.T) {
	t.Parallel()
	require.Equal(t, spreadResult{}, spread(nil))
	require.Equal(t, spreadResult{P50: 2, P99: 3, Max: 3},
		spread([]time.Duration{3 * time.Second, time.Second, 2 * time.Second}))
}
