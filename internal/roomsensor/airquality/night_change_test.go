package airquality_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
)

// assigned returns an assignment of an athlete; an empty end is open.
func assigned(t *testing.T, device byte, label, from, to string) roomsensor.Assignment {
	t.Helper()
	a := roomsensor.Assignment{
		DeviceID: uuid.UUID{device}, Type: roomsensor.Athlete, Label: label, StartedAt: instant(t, from),
	}
	if to != "" {
		a.EndedAt = new(instant(t, to))
	}
	return a
}

// TestNightChanges checks the sentences about the nights that a change moves, in a zone in which clocks are set back on
// 25 October.
func TestNightChanges(t *testing.T) {
	t.Parallel()
	berlin := zone(t, "Europe/Berlin")
	now := instant(t, "2026-11-22T14:05:00Z")
	type list = []roomsensor.Assignment
	ana := assigned(t, 1, "Ana Ruiz", "2026-11-10T12:00:00Z", "")
	sentences := func(before, after list) (texts []string) {
		for _, c := range airquality.NightChanges(before, after, airquality.DefaultNightHours, berlin, now) {
			texts = append(texts, c.String())
		}
		return texts
	}
	with := func(a roomsensor.Assignment, change func(*roomsensor.Assignment)) list {
		change(&a)
		return list{a}
	}
	maya := func(a *roomsensor.Assignment) { a.Label = "Maya Okafor" }
	end := func(at string) func(a *roomsensor.Assignment) {
		return func(a *roomsensor.Assignment) { a.EndedAt = new(instant(t, at)) }
	}
	start := func(at string) func(a *roomsensor.Assignment) {
		return func(a *roomsensor.Assignment) { a.StartedAt = instant(t, at) }
	}
	for _, c := range []struct {
		name          string
		before, after list
		want          []string
	}{
		{"another person", list{ana}, with(ana, maya), []string{"12 nights move from Ana Ruiz to Maya Okafor"}},
		{"spelling only", list{ana}, with(ana, func(a *roomsensor.Assignment) { a.Label = " ana ruiz" }), nil},
		{"a reference is another person", list{ana}, with(ana, func(a *roomsensor.Assignment) { a.ExternalRef = new("7") }), []string{
			"12 nights move from Ana Ruiz (athlete without a reference) to Ana Ruiz (athlete with the reference 7)",
		}},
		{"deleted", list{ana}, nil, []string{"12 nights of Ana Ruiz lose the assignment"}},
		{"ended later in the day", list{ana}, with(ana, end("2026-11-22T10:00:00Z")), nil},
		{"ended in a night", list{ana}, with(ana, end("2026-11-19T23:00:00Z")), []string{
			"3 nights of Ana Ruiz lose the assignment, 1 of them in part",
		}},
		{"starts earlier", list{ana}, with(ana, start("2026-11-09T23:30:00Z")), []string{
			"A part of 1 night gets the assignment Ana Ruiz",
		}},
		{"over the end of summer time", list{ana}, with(ana, start("2026-10-24T20:00:00Z")), []string{
			"17 nights get the assignment Ana Ruiz",
		}},
		{"transferred now", list{ana}, append(with(ana, end("2026-11-22T14:05:00Z")),
			assigned(t, 1, "Bea", "2026-11-22T14:05:00Z", "")), nil},
		{"swapped", list{ana, assigned(t, 2, "Bea", "2026-11-01T12:00:00Z", "")}, list{
			with(ana, end("2026-11-20T12:00:00Z"))[0], assigned(t, 1, "Bea", "2026-11-20T12:00:00Z", ""),
			assigned(t, 2, "Bea", "2026-11-01T12:00:00Z", "2026-11-20T12:00:00Z"), assigned(t, 2, "Ana Ruiz", "2026-11-20T12:00:00Z", ""),
		}, []string{"2 nights move from Ana Ruiz to Bea", "2 nights move from Bea to Ana Ruiz"}},
	} {
		require.Equal(t, c.want, sentences(c.before, c.after), c.name)
	}

	// The running night counts up to now.
	now = instant(t, "2026-11-22T22:00:00Z")
	require.Equal(t, []string{"A part of 1 night of Ana Ruiz loses the assignment"},
		sentences(list{ana}, with(ana, end("2026-11-22T21:30:00Z"))))
}

// drawAssignments returns some assignments of two athletes on one device, in the 20 days after a time.
func drawAssignments(r *rapid.T, name string, at time.Time) (all []roomsensor.Assignment) {
	for n := range rapid.IntRange(0, 4).Draw(r, name) {
		at = at.Add(time.Duration(rapid.IntRange(0, 90).Draw(r, name)) * time.Hour)
		a := roomsensor.Assignment{Type: roomsensor.Athlete, Label: strconv.Itoa(n % 2), StartedAt: at}
		at = at.Add(time.Duration(rapid.IntRange(1, 90).Draw(r, name)) * time.Hour)
		a.EndedAt = &at
		all = append(all, a)
	}
	return all
}

// labelAt returns the label of the assignment at a time, or an empty text.
func labelAt(all []roomsensor.Assignment, at time.Time) string {
	for i := range all {
		if all[i].Window().Contains(at) {
			return all[i].Label
		}
	}
	return ""
}

// TestNightChangesProperty compares the nights with those that are looked up hour by hour.
func TestNightChangesProperty(t *testing.T) {
	t.Parallel()
	now := instant(t, "2026-03-01T12:00:00Z")
	hours := airquality.DefaultNightHours
	rapid.Check(t, func(r *rapid.T) {
		before := drawAssignments(r, "before", now.AddDate(0, 0, -20))
		after := drawAssignments(r, "after", now.AddDate(0, 0, -20))
		want := map[[2]string]int{}
		for n := range 22 {
			night := hours.Night(now.AddDate(0, 0, -n), time.UTC).Window
			found := map[[2]string]bool{}
			for at := night.From; at.Before(night.To) && at.Before(now); at = at.Add(time.Hour) {
				pair := [2]string{labelAt(before, at), labelAt(after, at)}
				if pair[0] != pair[1] && !found[pair] {
					found[pair] = true
					want[pair]++
				}
			}
		}
		got := map[[2]string]int{}
		for _, c := range airquality.NightChanges(before, after, hours, time.UTC, now) {
			require.LessOrEqual(r, c.Partial, c.Nights)
			got[[2]string{labelOf(c.From), labelOf(c.To)}] += c.Nights
		}
		require.Equal(r, want, got)
	})
}

func labelOf(a *roomsensor.Assignment) string {
	if a == nil {
		return ""
	}
	return a.Label
}

// TestAssignmentPreview checks what a person must confirm.
func TestAssignmentPreview(t *testing.T) {
	t.Parallel()
	now := instant(t, "2026-11-22T14:05:00Z")
	old := assigned(t, 1, "Ana", "2020-11-20T12:00:00Z", "")
	labeled := old
	labeled.Label = "Bea"
	moved := old
	moved.StartedAt = now.Add(-31 * 24 * time.Hour)
	recent := assigned(t, 1, "Ana", "2026-10-24T12:00:00Z", "")
	for name, c := range map[string]struct {
		before, after []roomsensor.Assignment
		asks          int
	}{
		"a new one long ago":        {nil, []roomsensor.Assignment{old}, 1},
		"a new one":                 {nil, []roomsensor.Assignment{recent}, 0},
		"an old one, another label": {[]roomsensor.Assignment{old}, []roomsensor.Assignment{labeled}, 0},
		"an old one, another start": {[]roomsensor.Assignment{old}, []roomsensor.Assignment{moved}, 1},
	} {
		outcome := roomsensor.AssignmentOutcome{Before: c.before, After: c.after}
		preview := airquality.NewAssignmentPreview(outcome, nil, airquality.DefaultNightHours, time.UTC, now)
		require.Len(t, preview.OldStarts, c.asks, name)
	}
}
