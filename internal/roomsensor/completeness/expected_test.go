package completeness_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/completeness"
	"roomsensor/test/conformance"
)

// at returns a time on 2026-03-10, the day of now.
func at(clock string) time.Time {
	t, err := time.Parse("2006-01-02T15:04:05.999999Z", "2026-03-10T"+clock+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

// unit returns an installation between two times of that day; an empty one is unbounded.
func unit(from, to string) (i roomsensor.Installation) {
	if from != "" {
		i.From = new(at(from))
	}
	if to != "" {
		i.To = new(at(to))
	}
	return i
}

// now is the time at which the windows of the tests are expected.
var now = time.Date(2026, time.March, 10, 12, 30, 0, 123456789, time.UTC)

func TestExpected(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A3.3")
	type units = []roomsensor.Installation
	for _, test := range []struct {
		rule             string
		from, to         string
		units            units
		wantFrom, wantTo string // no bucket if both are equal
	}{
		{"starts inside the window", "10:00:00", "11:00:00", nil, "10:00:00", "11:00:00"},
		{"does not start before the window", "10:00:00.000001", "11:00:00", nil, "10:05:00", "11:00:00"},
		{"may end after the window", "10:00:00", "10:55:00.000001", nil, "10:00:00", "11:00:00"},
		{"an open bucket is not expected", "12:00:00", "13:00:00", nil, "12:00:00", "12:30:00"},
		{"nor is one of the future", "13:00:00", "14:00:00", nil, "12:30:00", "12:30:00"},
		{"not before the first unit", "10:00:00", "11:00:00", units{unit("10:20:00", "")}, "10:20:00", "11:00:00"},
		{"not if it starts before the first unit", "10:00:00", "11:00:00", units{unit("10:20:01", "")}, "10:25:00", "11:00:00"},
		{"of two units the first counts", "10:00:00", "11:00:00", units{unit("10:40:00", ""), unit("10:20:00", "10:30:00")}, "10:20:00", "11:00:00"},
		{"an unbounded installation sets no limit", "10:00:00", "11:00:00", units{unit("10:40:00", ""), unit("", "10:30:00")}, "10:00:00", "11:00:00"},
		{"ended when the last unit was removed", "10:00:00", "11:00:00", units{unit("", "10:30:00")}, "10:00:00", "10:30:00"},
		{"not if it ended after the removal", "10:00:00", "11:00:00", units{unit("", "10:34:59")}, "10:00:00", "10:30:00"},
		{"of two units the last counts", "10:00:00", "11:00:00", units{unit("10:30:00", "10:45:00"), unit("", "10:20:00")}, "10:00:00", "10:45:00"},
		{"a removal does not count if a unit is installed now", "10:00:00", "11:00:00", units{unit("", "10:30:00"), unit("12:29:00", "")}, "10:00:00", "11:00:00"},
		{"it counts if a unit is installed later", "10:00:00", "11:00:00", units{unit("", "10:30:00"), unit("12:31:00", "")}, "10:00:00", "10:30:00"},
		{"a removal in the future does not count", "12:00:00", "13:00:00", units{unit("", "12:45:00")}, "12:00:00", "12:30:00"},
		{"nothing before a first installation in the future", "10:00:00", "13:00:00", units{unit("12:45:00", "12:50:00")}, "12:30:00", "12:30:00"},
		{"nothing after a removal before the window", "10:00:00", "11:00:00", units{unit("08:00:00", "09:00:00")}, "09:00:00", "09:00:00"},
		{"nothing in a unit that was shorter than a bucket", "10:00:00", "11:00:00", units{unit("10:01:00", "10:09:00")}, "10:05:00", "10:05:00"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			got := completeness.Expected(roomsensor.Window{From: at(test.from), To: at(test.to)}, test.units, now)
			want := roomsensor.Window{From: at(test.wantFrom), To: at(test.wantTo)}
			require.Equal(t, want.Buckets(), got.Buckets())
			if !want.Empty() {
				require.Equal(t, want, got)
			}
		})
	}
	always := roomsensor.Window{From: time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC), To: roomsensor.Forever}
	require.Equal(t, 213_029_142, completeness.Expected(always, nil, now).Buckets(), "longer than a Duration")
}

// installations draws units that were in one device one after the other, around a time.
func installations(t *rapid.T, around time.Time) (units []roomsensor.Installation) {
	next := around.Add(-time.Duration(rapid.IntRange(0, 200).Draw(t, "minutes before")) * time.Minute)
	for range rapid.IntRange(0, 3).Draw(t, "units") {
		installed := roomsensor.Installation{From: new(next)}
		next = next.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "seconds installed")) * time.Second)
		installed.To = new(next)
		next = next.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "seconds between")) * time.Second)
		units = append(units, installed)
	}
	if n := len(units); n > 0 {
		if rapid.Bool().Draw(t, "unbounded") {
			units[0].From = nil
		}
		if rapid.Bool().Draw(t, "installed") {
			units[n-1].To = nil
		}
	}
	return rapid.Permutation(units).Draw(t, "order")
}

// window draws a window around a time.
func window(t *rapid.T, around time.Time) roomsensor.Window {
	from := around.Add(time.Duration(rapid.IntRange(-12_000, 3000).Draw(t, "from")) * time.Second)
	return roomsensor.Window{From: from, To: from.Add(time.Duration(rapid.IntRange(0, 12_000).Draw(t, "length")) * time.Second)}
}

// isExpected is the text of A3.3, about one bucket.
func isExpected(bucket time.Time, w roomsensor.Window, units []roomsensor.Installation, now time.Time) bool {
	end := bucket.Add(5 * time.Minute)
	if bucket.Before(w.From) || !bucket.Before(w.To) || end.After(now) {
		return false
	}
	started, removed, installed := len(units) == 0, len(units) == 0, false
	for _, u := range units {
		started = started || u.From == nil || !bucket.Before(*u.From)
		installed = installed || u.Covers(now)
		removed = removed || u.To != nil && !u.To.After(now) && !end.After(*u.To)
	}
	// Units that are all installed later than now were not removed either.
	return started && (installed || removed)
}

// TestExpectedProperty compares every bucket near a window with the text of A3.3, and counts the parts of the window.
func TestExpectedProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, units := window(t, now), installations(t, now)
		expected := completeness.Expected(w, units, now)
		count := 0
		for bucket := roomsensor.BucketOf(w.From).Add(-time.Hour); bucket.Before(w.To.Add(time.Hour)); bucket = bucket.Add(5 * time.Minute) {
			is := isExpected(bucket, w, units, now)
			require.Equal(t, is, !bucket.Before(expected.From) && bucket.Before(expected.To), bucket)
			if is {
				count++
			}
		}
		require.Equal(t, count, expected.Buckets())
		cut := w.From.Add(time.Duration(rapid.Int64Range(0, int64(w.To.Sub(w.From))).Draw(t, "cut")))
		older, newer := roomsensor.Window{From: w.From, To: cut}, roomsensor.Window{From: cut, To: w.To}
		require.Equal(t, count, expected.Intersect(older).Buckets()+expected.Intersect(newer).Buckets(), "parts")
	})
}
