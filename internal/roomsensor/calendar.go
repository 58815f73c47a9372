package roomsensor

import (
	"iter"
	"time"
)

// Interval is the length of the buckets of aggregates (A1.1).
type Interval string

// The intervals of A1.1.
const (
	Hourly Interval = "1h"
	Daily  Interval = "1d"
)

// intervalWindows are the windows of aggregates (A1.2).
var intervalWindows = map[Interval]WindowRule{
	Hourly: {Default: day, Max: 400 * day},
	Daily:  {Default: 30 * day, Max: 3660 * day},
}

// ParseInterval parses the parameter interval (A1.1); nil means that it was not sent, which is refused.
func ParseInterval(text *string) (Interval, error) {
	if text == nil {
		return "", Invalid("interval", "Send interval=1h for hours or interval=1d for days.")
	}
	interval := Interval(*text)
	if _, ok := intervalWindows[interval]; !ok {
		return "", Invalid("interval", "interval must be 1h or 1d.")
	}
	return interval, nil
}

// Windows returns the rule of the windows of aggregates with this interval.
func (i Interval) Windows() WindowRule { return intervalWindows[i] }

// Calendar divides time into the buckets of aggregates (A1.3). Their edges do not depend on a window.
type Calendar struct {
	interval Interval
	zone     *time.Location // of days
}

// NewCalendar returns the calendar of an interval. Hours are UTC hours in every zone.
func NewCalendar(interval Interval, zone *time.Location) Calendar { return Calendar{interval, zone} }

// The buckets that the API can express are within [firstInstant, Forever).
var firstInstant = time.Date(0, time.January, 1, 0, 0, 0, 0, time.UTC)

// Expressible returns the part of a window whose buckets the API can express: RFC 3339 has the years 0 to 9999.
func Expressible(w Window) Window { return w.Intersect(Window{From: firstInstant, To: Forever}) }

// Bucket returns the bucket that contains a time, in UTC. A bucket that begins before year 0 or ends after year 9999 is
// cut off there.
func (c Calendar) Bucket(at time.Time) Window {
	if c.interval == Hourly {
		from := at.UTC().Truncate(time.Hour)
		return Expressible(Window{From: from, To: from.Add(time.Hour)})
	}
	year, month, date := at.In(c.zone).Date()
	bucket := Window{From: c.begin(year, month, date), To: c.begin(year, month, date+1)}
	for next := 2; !at.Before(bucket.To); next++ { // The clock was set back from the next date.
		bucket = Window{From: bucket.To, To: c.begin(year, month, date+next)}
	}
	return Expressible(bucket)
}

// begin returns the first instant at which the local date is the given one, which may be a date like January 32. It is
// not always midnight: the clock may be set forward over midnight, or even over a whole date. That of a date that does
// not exist is that of the next one.
func (c Calendar) begin(year int, month time.Month, date int) time.Time {
	return reach(c.zone, time.Date(year, month, date, 0, 0, 0, 0, time.UTC))
}

// longestOffset is longer than the offset of every zone.
const longestOffset = 26 * time.Hour

// reach returns the first instant at which the clocks of a zone reach a local time, which is given in UTC. If they are
// set forward over it, that is the instant at which they are.
func reach(zone *time.Location, local time.Time) time.Time {
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
	at := reach(zone, local)
	if _, offset := at.In(zone).Zone(); at.Add(time.Duration(offset) * time.Second).Equal(local) {
		return at
	}
	_, before := at.Add(-1).In(zone).Zone()
	return local.Add(-time.Duration(before) * time.Second)
}

// leave returns the last instant at which the clocks of a zone show a local time, which is given in UTC. It differs
// from that of reach if they are set back over it.
func leave(zone *time.Location, local time.Time) time.Time {
	first := reach(zone, local)
	_, offset := first.Add(day).In(zone).Zone()
	again := local.Add(-time.Duration(offset) * time.Second)
	if _, actual := again.In(zone).Zone(); again.After(first) && actual == offset {
		return again
	}
	return first
}

// Newest returns the newest buckets that intersect a window, at most limit of them, the newest first.
func (c Calendar) Newest(w Window, limit int) []Window {
	var buckets []Window
	for !w.Empty() && len(buckets) < limit {
		bucket := c.Bucket(w.To.Add(-time.Microsecond))
		buckets = append(buckets, bucket)
		w.To = bucket.From
	}
	return buckets
}

// Buckets returns the buckets that intersect a window, the oldest first.
func (c Calendar) Buckets(w Window) iter.Seq[Window] {
	return func(yield func(Window) bool) {
		for !w.Empty() {
			bucket := c.Bucket(w.From)
			if !yield(bucket) {
				return
			}
			w.From = bucket.To
		}
	}
}
