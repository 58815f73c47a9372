package ledger

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func fleet(n int) (units []*Unit) {
	swapped := now.Add(-30 * day).Truncate(bucket)
	for i := range n {
		units = append(units, &Unit{HardwareID: "dev:" + string(rune('1'+i)), Team: i % 2, Device: uuid.New()})
	}
	units[0].To, units[1].Device, units[1].Team, units[1].From = swapped, units[0].Device, units[0].Team, swapped
	return units
}

func TestMakeSeed(t *testing.T) {
	t.Parallel()
	units := fleet(6)
	options := Options{Seed: 3, Readings: 300, Span: time.Minute, Now: now, Teams: 2, Units: units}
	first, err := Make(options)
	require.NoError(t, err)
	again, err := Make(options)
	require.NoError(t, err)
	require.Equal(t, first, again)
	options.Seed++
	other, err := Make(options)
	require.NoError(t, err)
	require.NotEqual(t, first, other)
	options.Readings = 1_000_000
	_, err = Make(options)
	require.ErrorContains(t, err, "more units")
}

// TestMake compares the texts of uploads with what the ledger expects of them.
func TestMake(t *testing.T) {
	t.Parallel()
	requests, err := Make(Options{Seed: 5, Readings: 8_000, Span: time.Minute, Now: now, Teams: 2, Units: fleet(6)})
	require.NoError(t, err)
	require.True(t, slices.IsSortedFunc(requests, func(a, b *Request) int { return int(a.Due - b.Due) }))
	require.Less(t, requests[len(requests)-1].Due, time.Minute)
	seen := map[int]int{}
	reasons := map[roomsensor.Reason]int{}
	refused, readings, sourced := 0, 0, 0
	for _, r := range requests {
		if r.InvalidLine != "" {
			refused++
			require.Contains(t, string(r.Body()), "\n"+r.InvalidLine)
		}
		for _, u := range r.Uploads {
			id, ok := IDOf(u.Text)
			require.True(t, ok)
			require.Equal(t, u.ID, id)
			reasons[u.Reject]++
			if seen[id]++; seen[id] == 1 && r.InvalidLine == "" {
				readings += len(u.Readings)
				if r.Path == Source {
					sourced++
				}
			}
			requireText(t, u)
		}
	}
	require.GreaterOrEqual(t, readings, 8_000)
	require.NotZero(t, refused)
	require.InDelta(t, 1./3, float64(sourced)/float64(len(seen)), 0.05, "a third of the uploads goes to sources")
	for _, reason := range []roomsensor.Reason{
		"", roomsensor.ReasonNotParsable, roomsensor.ReasonUnknownUnit, roomsensor.ReasonValueInvalid,
		roomsensor.ReasonMeasuredAtOutOfRange,
	} {
		require.NotZero(t, reasons[reason], reason)
	}
	require.Contains(t, slices.Collect(maps.Values(seen)), 2, "some are sent twice")
}

// requireText checks that an upload's text has its readings, at times at which its unit was assigned to its device.
func requireText(t *testing.T, u *Upload) {
	t.Helper()
	if u.Reject == roomsensor.ReasonNotParsable {
		require.False(t, json.Valid(u.Text))
		return
	}
	var sent struct {
		Readings []map[string]any `json:"readings"`
	}
	require.NoError(t, json.Unmarshal(u.Text, &sent))
	require.LessOrEqual(t, len(u.Readings), len(sent.Readings))
	for i, m := range u.Readings {
		if m.MeasuredAt.After(now) || m.MeasuredAt.Before(u.Unit.From) ||
			!u.Unit.To.IsZero() && !m.MeasuredAt.Before(u.Unit.To) {
			t.Fatalf("the unit was not assigned at %s", m.MeasuredAt)
		}
		if got := stores(t, sent.Readings[i]); got != m {
			t.Fatalf("upload %d sends %+v for %+v", u.ID, got, m)
		}
	}
}

// stores returns the measurement that must be stored for a reading in a text.
func stores(t *testing.T, sent map[string]any) (m roomsensor.Measurement) {
	t.Helper()
	text, _ := sent["measured_at"].(string)
	at, ok := roomsensor.ParseTime(text)
	require.True(t, ok)
	m.MeasuredAt = at
	for _, metric := range roomsensor.Metrics {
		_, greatest := metric.Range()
		if x, ok := sent[metric.String()].(float64); ok && x <= greatest { // A value out of range is stored as null.
			m.Values.Set(metric, float32(x))
		}
	}
	return m
}
