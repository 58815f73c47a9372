package aggregate

import (
	"iter"
	"time"

	"roomsensor/internal/roomsensor"
)

// Interval is the length of the buckets of aggregates (A1.1).
type Interval string

// The intervals of A1.1.
const (
	Hourly Interval = "1h"
	Daily  Interval = "1d"
)

// intervalWindows are the windows of aggregates (A1.2).
var intervalWindows = map[Interval]roomsensor.WindowRule{
	Hourly: {Default: 24 * time.Hour, Max: 400 * 24 * time.Hour},
	Daily:  {Default: 30 * 24 * time.Hour, Max: 3660 * 24 * time.Hour},
}

// ParseInterval parses the parameter interval (A1.1); nil means that it was not sent, which is refused.
func ParseInterval(text *string) (Interval, error) {
	if text == nil {
		return "", roomsensor.Invalid("interval", "Send interval=1h for hours or interval=1d for days.")
	}
	interval := Interval(*text)
	if _, ok := intervalWindows[interval]; !ok {
		return "", roomsensor.Invalid("interval", "interval must be 1h or 1d.")
	}
	return interval, nil
}

// Windows returns the rule of the windows of aggregates with this interval.
func (i Interval) Windows() roomsensor.WindowRule { return intervalWindows[i] }

// Calendar divides time into the buckets of aggregates (A1.3). Their edges do not depend on a window.
type Calendar struct {
	interval Interval
	zone     *time.Location // of days
}

// NewCalendar returns the calendar of an interval. Hours are UTC hours in every zone.
func NewCalendar(interval Interval, zone *time.Location) Calendar { return Calendar{interval, zone} }

// Bucket returns the bucket that contains a time, in UTC. A bucket that begins before year 0 or ends after year 9999 is
// cut off there.
func (c Calendar) Bucket(at time.Time) roomsensor.Window {
	if c.interval == Hourly {
		from := at.UTC().Truncate(time.Hour)
		return roomsensor.Expressible(roomsensor.Window{From: from, To: from.Add(time.Hour)})
	}
	year, month, date := at.In(c.zone).Date()
	bucket := roomsensor.Window{From: c.begin(year, month, date), To: c.begin(year, month, date+1)}
	for next := 2; !at.Before(bucket.To); next++ { // The clock was set back from the next date.
		bucket = roomsensor.Window{From: bucket.To, To: c.begin(year, month, date+next)}
	}
	return roomsensor.Expressible(bucket)
}

// begin returns the first instant at which the local date is the given one, which may be a date like January 32. It is
// not always midnight: the clock may be set forward over midnight, or even over a whole date. That of a date that does
// not exist is that of the next one.
func (c Calendar) begin(year int, month time.Month, date int) time.Time {
	return roomsensor.FirstInstant(time.Date(year, month, date, 0, 0, 0, 0, time.UTC), c.zone)
}

// Newest returns the newest buckets that intersect a window, at most limit of them, the newest first.
func (c Calendar) Newest(w roomsensor.Window, limit int) []roomsensor.Window {
	var buckets []roomsensor.Window
	for !w.Empty() && len(buckets) < limit {
		bucket := c.Bucket(w.To.Add(-time.Microsecond))
		buckets = append(buckets, bucket)
		w.To = bucket.From
	}
	return buckets
}

// Buckets returns the buckets that intersect a window, the oldest first.
func (c Calendar) Buckets(w roomsensor.Window) iter.Seq[roomsensor.Window] {
	return func(yield func(roomsensor.Window) bool) {
		for !w.Empty() {
			bucket := c.Bucket(w.From)
			if !yield(bucket) {
				return
			}
			w.From = bucket.To
		}
	}
}
