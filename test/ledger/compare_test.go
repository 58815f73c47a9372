package ledger

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func TestUnchanged(t *testing.T) {
	t.Parallel()
	u := sample(1, 3)
	l := newLedger(u)
	u.outcome = OK
	before, _ := l.Compare(stored(u))
	require.Empty(t, line(before.Unchanged(before))[len("0 lost, 0 duplicated, 0 wrong, 0 phantom"):])

	rows := stored(u)
	rows[0].IngestedAt = now.Add(time.Microsecond)
	rows[1].Bucket += 3600
	after, _ := l.Compare(rows)
	verdict := before.Unchanged(after)
	require.Equal(t, "1 lost, 0 duplicated, 1 wrong, 1 phantom", line(verdict))
}

func TestHours(t *testing.T) {
	t.Parallel()
	u := sample(1, 14) // An hour and two readings of the next.
	u.outcome = OK
	found, _ := newLedger(u).Compare(stored(u))
	count := func(readings []roomsensor.Measurement) (c [roomsensor.MetricCount]int) {
		for _, m := range readings {
			for _, metric := range roomsensor.Metrics {
				if _, ok := m.Values.Get(metric); ok {
					c[metric]++
				}
			}
		}
		return c
	}
	noon := now.Truncate(time.Hour)
	hours := func() []Hour {
		return []Hour{
			{u.Unit.Device, noon, count(u.Readings[:12])}, {u.Unit.Device, noon.Add(time.Hour), count(u.Readings[12:])},
		}
	}
	verdict := found.Hours(hours())
	require.True(t, verdict.Clean(), verdict.Examples)

	twice := hours()
	twice[0].Counts[roomsensor.Temp] += 2
	verdict = found.Hours(twice)
	require.Equal(t, "0 lost, 2 duplicated, 0 wrong, 0 phantom", line(verdict))

	missing := hours()[:1]
	total := 0
	for _, n := range hours()[1].Counts {
		total += n
	}
	verdict = found.Hours(missing)
	require.Equal(t, total, verdict.Lost)
}

func TestRejects(t *testing.T) {
	t.Parallel()
	bad, good := sample(1, 0), sample(2, 0)
	bad.Reject, bad.Text = roomsensor.ReasonUnknownUnit, []byte(`{"firmware_version":"1.1"}`)
	l := newLedger(bad, good)
	l.Arrived(1, Arrival{Sequence: 4})
	l.Arrived(1, Arrival{Sequence: 7})
	l.Arrived(2, Arrival{Sequence: 5})
	right := []Reject{{4, bad.Reject, bad.Text}, {7, bad.Reject, bad.Text}}
	for _, test := range []struct {
		rejects []Reject
		want    string
	}{
		{right, "0 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{right[:1], "1 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{append(slices.Clone(right), right[0]), "0 lost, 1 duplicated, 0 wrong, 0 phantom"},
		{append(slices.Clone(right), Reject{5, bad.Reject, nil}), "0 lost, 0 duplicated, 0 wrong, 1 phantom"},
		{append(slices.Clone(right), Reject{4, roomsensor.ReasonNotStorable, nil}), "0 lost, 0 duplicated, 0 wrong, 1 phantom"},
		{[]Reject{right[0], {7, bad.Reject, []byte(`{"firmware_version":"1.2"}`)}}, "0 lost, 0 duplicated, 1 wrong, 0 phantom"},
	} {
		require.Equal(t, test.want, line(l.Rejects(test.rejects)))
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	first, second, hidden := sample(1, 0), sample(2, 0), sample(3, 0)
	first.Heartbeat, second.Heartbeat = true, true
	l := newLedger(first, second, hidden)
	l.Arrived(1, Arrival{1, now})
	l.Arrived(2, Arrival{2, now.Add(1500 * time.Nanosecond)})
	l.Arrived(3, Arrival{3, now.Add(time.Hour)})
	right := State{first.Unit.Device, now.Add(time.Microsecond), firmwareOf(2), rssiOf(2)}
	require.Equal(t, "0 lost, 0 duplicated, 0 wrong, 0 phantom", line(l.States([]State{right, {Device: uuid.New()}})))
	for _, test := range []struct {
		change func(*State)
		want   string
	}{
		{func(s *State) { s.LastSeenAt = now }, "1 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{func(s *State) { s.LastSeenAt = now.Add(time.Hour) }, "0 lost, 0 duplicated, 1 wrong, 0 phantom"},
		{func(s *State) { s.Firmware = firmwareOf(1) }, "0 lost, 0 duplicated, 1 wrong, 0 phantom"},
		{func(s *State) { s.RSSI = 0 }, "0 lost, 0 duplicated, 1 wrong, 0 phantom"},
	} {
		state := right
		test.change(&state)
		require.Equal(t, test.want, line(l.States([]State{state})))
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	v := Verdict{Lost: 2, Wrong: 1}
	v.Confirm(Verdict{Lost: 1, Phantom: 3, Examples: []string{"one"}})
	require.Equal(t, Verdict{Lost: 2, Wrong: 1, Phantom: 3, Examples: []string{"one"}}, v)
	v.Add(Verdict{Lost: 1, Duplicated: 1, Wrong: 1, Phantom: 1})
	require.Equal(t, "3 lost, 1 duplicated, 2 wrong, 4 phantom", v.String())
	for range 2 * maxExamples {
		v.lost(1, "many")
	}
	require.Len(t, v.Examples, maxExamples)
}
