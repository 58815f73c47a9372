package roomsensor

import (
	"fmt"
	"time"
)

// LocalTime is the layout of a local time with its offset from UTC, such as 2026-01-31T08:00:00+01:00 (A19.1).
const LocalTime = "2006-01-02T15:04:05-07:00"

// localLayouts are the forms in which browsers send a local time (<input type="datetime-local">).
var localLayouts = [...]string{"2006-01-02T15:04", "2006-01-02T15:04:05"}

// FormatLocal returns a time as the value of a field for a local time, without seconds.
func FormatLocal(at time.Time, zone *time.Location) string {
	return at.In(zone).Format(localLayouts[0])
}

// ParseLocal parses the value of a field for a local time. It refuses a time that the zone does not have, because the
// clock is set forward over it, and one that it has twice, because the clock is set back to it. The error is for the
// field param, and its message says what to do.
func ParseLocal(param, text string, zone *time.Location) (time.Time, error) {
	var wall time.Time
	var err error
	for _, layout := range localLayouts {
		if wall, err = time.Parse(layout, text); err == nil {
			break
		}
	}
	if err != nil || wall.Year() == 0 {
		return time.Time{}, Invalid(param, "Enter a date and a time, such as 2026-01-31T08:00.")
	}
	at := FirstInstant(wall, zone)
	_, offset := at.In(zone).Zone()
	clock := wall.Format("15:04 on 2 Jan 2006")
	switch {
	case !at.Add(time.Duration(offset) * time.Second).Equal(wall):
		return time.Time{}, Invalid(param, "The time "+clock+" does not exist in "+zone.String()+
			", because the clock is set forward over it. Enter an earlier or a later time.")
	case !at.Equal(LastInstant(wall, zone)):
		return time.Time{}, Invalid(param, "The time "+clock+" occurs twice in "+zone.String()+
			", because the clock is set back over it. Enter a time before or after the repeated hour.")
	}
	return at, nil
}

// longestOffset is longer than the offset of every zone.
const longestOffset = 26 * time.Hour

// FirstInstant returns the first instant at which the clocks of a zone reach a local time, which is given in UTC. If
// they are set forward over it, that is the instant at which they are.
func FirstInstant(local time.Time, zone *time.Location) time.Time {
	at := local.Add(-longestOffset)
	for {
		there := at.In(zone)
		_, offset := there.Zone()
		begin := local.Add(-time.Duration(offset) * time.Second)
		if begin.Before(at) {
			return at // The clocks were set forward over the local time at this instant.
		}
		_, end := there.ZoneBounds()
		if !end.IsZero() && !end.After(at) {
			end = at.Add(day) // ZoneBounds counts 365 days for every year: on December 31 of a leap year, its end has passed.
		}
		if end.IsZero() || begin.Before(end) {
			return begin
		}
		at = end.UTC()
	}
}

// LocalInstant returns when the clocks of a zone show a local time, which is given in UTC. A repeated local time is the
// first one. A missing one is moved forward by as much as the clocks are: 02:30 becomes 03:30 (time rule, A11.5).
func LocalInstant(local time.Time, zone *time.Location) time.Time {
	at := FirstInstant(local, zone)
	if _, offset := at.In(zone).Zone(); at.Add(time.Duration(offset) * time.Second).Equal(local) {
		return at
	}
	_, before := at.Add(-1).In(zone).Zone()
	return local.Add(-time.Duration(before) * time.Second)
}

// LastInstant returns the last instant at which the clocks of a zone show a local time, which is given in UTC. It
// differs from FirstInstant if they are set back over it.
func LastInstant(local time.Time, zone *time.Location) time.Time {
	first := FirstInstant(local, zone)
	_, offset := first.Add(day).In(zone).Zone()
	again := local.Add(-time.Duration(offset) * time.Second)
	if _, actual := again.In(zone).Zone(); again.After(first) && actual == offset {
		return again
	}
	return first
}

// Clock is a time of day in minutes after midnight, from 0 to 1439.
type Clock int

// ParseClock parses a time of day of the form 22:00.
func ParseClock(text string) (Clock, bool) {
	at, err := time.Parse("15:04", text)
	return Clock(60*at.Hour() + at.Minute()), err == nil
}

// String returns the form 22:00.
func (c Clock) String() string { return fmt.Sprintf("%02d:%02d", int(c)/60, int(c)%60) }

// Earlier returns the earlier of two times.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
