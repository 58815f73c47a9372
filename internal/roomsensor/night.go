package roomsensor

import (
	"fmt"
	"strings"
	"time"
)

// Clock is a time of day in minutes after midnight, from 0 to 1439.
type Clock int

// minutesOfDay is the number of the times of a day.
const minutesOfDay = 24 * 60

// parseClock parses a time of day of the form 22:00.
func parseClock(text string) (Clock, bool) {
	at, err := time.Parse("15:04", text)
	return Clock(60*at.Hour() + at.Minute()), err == nil
}

// String returns the form 22:00.
func (c Clock) String() string { return fmt.Sprintf("%02d:%02d", int(c)/60, int(c)%60) }

// NightHours are when the nights of a team begin and end. A night that ends at an earlier time of day than it begins
// ends on the next date.
type NightHours struct{ Start, End Clock }

// DefaultNightHours are those of a team that chose no others.
var DefaultNightHours = NightHours{Start: 22 * 60, End: 7 * 60}

// NewNightHours parses the times of a night.
func NewNightHours(start, end string) (NightHours, error) {
	from, ok := parseClock(start)
	if !ok {
		return NightHours{}, Invalid("night_start",
			"Enter the start of the night as a time from 00:00 to 23:59, such as 22:00.")
	}
	to, ok := parseClock(end)
	if !ok {
		return NightHours{}, Invalid("night_end",
			"Enter the end of the night as a time from 00:00 to 23:59, such as 07:00.")
	}
	if from == to {
		return NightHours{}, Invalid("night_end",
			"The night must not end at the time at which it begins. Enter an earlier or a later end.")
	}
	return NightHours{from, to}, nil
}

// ParseNightHours parses the form 22:00-07:00.
func ParseNightHours(text string) (NightHours, error) {
	start, end, ok := strings.Cut(text, "-")
	if !ok {
		return NightHours{}, Invalid("night", "A night has the form 22:00-07:00.")
	}
	return NewNightHours(start, end)
}

// String returns the form 22:00-07:00.
func (h NightHours) String() string { return h.Start.String() + "-" + h.End.String() }

// Night is one night of a team.
type Night struct {
	Date   time.Time // midnight UTC of the local date on which it begins
	Window Window
}

// Night returns the night that begins on the date of a time. It has every instant at which the clocks of the zone are
// in its hours: if they are set back meanwhile, it is longer, and if they are set forward, shorter, or even empty. It
// ends before the next night begins.
func (h NightHours) Night(date time.Time, zone *time.Location) Night {
	year, month, dayOfMonth := date.Date()
	date = time.Date(year, month, dayOfMonth, 0, 0, 0, 0, time.UTC)
	at := func(c Clock) time.Time { return date.Add(time.Duration(c) * time.Minute) }
	end := h.End
	if end <= h.Start {
		end += minutesOfDay
	}
	w := Window{From: reach(zone, at(h.Start)), To: leave(zone, at(end))}
	return Night{Date: date, Window: w.Intersect(Window{From: w.From, To: reach(zone, at(h.Start+minutesOfDay))})}
}

// Last returns the newest night that has begun at now; it may be running still.
func (h NightHours) Last(now time.Time, zone *time.Location) Night {
	night := h.Night(now.In(zone).AddDate(0, 0, 1), zone)
	for night.Window.From.After(now) {
		night = h.Night(night.Date.AddDate(0, 0, -1), zone)
	}
	return night
}

// Before returns the nights before one, the newest first.
func (h NightHours) Before(night Night, zone *time.Location, n int) []Night {
	nights := make([]Night, n)
	for i := range nights {
		nights[i] = h.Night(night.Date.AddDate(0, 0, -1-i), zone)
	}
	return nights
}

// NightQuery selects a night of a team.
type NightQuery struct {
	Window     Window
	Thresholds Thresholds
	Now        time.Time
}

// NightRoom is the night of one assignment.
type NightRoom struct {
	NightResult

	Assignment Assignment
	DeviceName *string
}

// NightResult is what was measured in the part of a night in an assignment.
type NightResult struct {
	Window            Window // the part of the night; it may be empty
	Expected, Present int    // 5-minute buckets
	Metrics           [MetricCount]NightMetric
}

// NightMetric is what was measured of one metric.
type NightMetric struct {
	Summary

	Below, Above int // readings outside of the threshold
}

// Outside returns how long the values of the metric were outside of the threshold: each reading stands for its bucket.
func (m *NightMetric) Outside() time.Duration { return time.Duration(m.Below+m.Above) * BucketLength }

// Outside returns the longest time for which a metric was outside of its threshold.
func (r *NightResult) Outside() (longest time.Duration) {
	for m := range r.Metrics {
		longest = max(longest, r.Metrics[m].Outside())
	}
	return longest
}

// NightTally counts the readings of one night in an assignment, each once and in any order.
type NightTally struct {
	window, expected Window
	thresholds       *Thresholds
	tally            Tally
	below, above     [MetricCount]int
}

// NewNightTally returns a tally of the part of a night in an assignment of a device, with all installations in it.
func NewNightTally(q *NightQuery, a *Assignment, units []Installation) *NightTally {
	window := q.Window.Intersect(a.Window())
	if window.Empty() {
		window.To = window.From
	}
	return &NightTally{window: window, expected: Expected(window, units, q.Now), thresholds: &q.Thresholds}
}

// Window returns the part of the night.
func (t *NightTally) Window() Window { return t.window }

// Add adds a reading of the part of the night.
func (t *NightTally) Add(bucketAt time.Time, values *Values) {
	t.tally.Add(values, t.expected.Contains(bucketAt))
	for _, m := range Metrics {
		x, ok := values.Get(m)
		switch {
		case !ok:
		case t.thresholds[m].IsBelow(x):
			t.below[m]++
		case t.thresholds[m].IsAbove(x):
			t.above[m]++
		}
	}
}

// Result returns the result.
func (t *NightTally) Result() NightResult {
	total, _ := t.tally.Aggregate(t.window, t.expected.Buckets()) // Readings determine it always.
	result := NightResult{Window: t.window, Expected: total.Expected, Present: total.Present}
	for m := range result.Metrics {
		result.Metrics[m] = NightMetric{Summary: total.Metrics[m], Below: t.below[m], Above: t.above[m]}
	}
	return result
}
