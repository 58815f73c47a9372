package airquality

import (
	"strings"
	"time"

	"roomsensor/internal/roomsensor"
)

// minutesOfDay is the number of the times of a day.
const minutesOfDay = 24 * 60

// NightHours are when the nights of a team begin and end. A night that ends at an earlier time of day than it begins
// ends on the next date.
type NightHours struct{ Start, End roomsensor.Clock }

// DefaultNightHours are those of a team that chose no others.
var DefaultNightHours = NightHours{Start: 22 * 60, End: 7 * 60}

// NewNightHours parses the times of a night.
func NewNightHours(start, end string) (NightHours, error) {
	from, ok := roomsensor.ParseClock(start)
	if !ok {
		return NightHours{}, roomsensor.Invalid("night_start",
			"Enter the start of the night as a time from 00:00 to 23:59, such as 22:00.")
	}
	to, ok := roomsensor.ParseClock(end)
	if !ok {
		return NightHours{}, roomsensor.Invalid("night_end",
			"Enter the end of the night as a time from 00:00 to 23:59, such as 07:00.")
	}
	if from == to {
		return NightHours{}, roomsensor.Invalid("night_end",
			"The night must not end at the time at which it begins. Enter an earlier or a later end.")
	}
	return NightHours{from, to}, nil
}

// ParseNightHours parses the form 22:00-07:00.
func ParseNightHours(text string) (NightHours, error) {
	start, end, ok := strings.Cut(text, "-")
	if !ok {
		return NightHours{}, roomsensor.Invalid("night", "A night has the form 22:00-07:00.")
	}
	return NewNightHours(start, end)
}

// String returns the form 22:00-07:00.
func (h NightHours) String() string { return h.Start.String() + "-" + h.End.String() }

// Night is one night of a team.
type Night struct {
	Date   time.Time // midnight UTC of the local date on which it begins
	Window roomsensor.Window
}

// Night returns the night that begins on the date of a time. It has every instant at which the clocks of the zone are
// in its hours: if they are set back meanwhile, it is longer, and if they are set forward, shorter, or even empty. It
// ends before the next night begins.
func (h NightHours) Night(date time.Time, zone *time.Location) Night {
	year, month, dayOfMonth := date.Date()
	date = time.Date(year, month, dayOfMonth, 0, 0, 0, 0, time.UTC)
	at := func(c roomsensor.Clock) time.Time { return date.Add(time.Duration(c) * time.Minute) }
	end := h.End
	if end <= h.Start {
		end += minutesOfDay
	}
	w := roomsensor.Window{From: roomsensor.FirstInstant(at(h.Start), zone), To: roomsensor.LastInstant(at(end), zone)}
	next := roomsensor.FirstInstant(at(h.Start+minutesOfDay), zone)
	return Night{Date: date, Window: w.Intersect(roomsensor.Window{From: w.From, To: next})}
}

// Last returns the newest night that has begun at now; it may be running still.
func (h NightHours) Last(now time.Time, zone *time.Location) Night {
	night := h.Night(now.In(zone).AddDate(0, 0, 1), zone)
	for night.Window.From.After(now) {
		night = h.Night(night.Date.AddDate(0, 0, -1), zone)
	}
	return night
}

// Ended returns the newest night that is over at a time.
func (h NightHours) Ended(at time.Time, zone *time.Location) Night {
	night := h.Last(at, zone)
	if night.Window.To.After(at) {
		return h.Before(night, zone, 1)[0]
	}
	return night
}

// LastNight returns the night that people mean by last night: the newest one once half of it is over, and until then
// the one before.
func (h NightHours) LastNight(now time.Time, zone *time.Location) (last, newest Night) {
	newest = h.Last(now, zone)
	if half := newest.Window.To.Sub(newest.Window.From) / 2; now.Before(newest.Window.From.Add(half)) {
		return h.Before(newest, zone, 1)[0], newest
	}
	return newest, newest
}

// Before returns the nights before one, the newest first.
func (h NightHours) Before(night Night, zone *time.Location, n int) []Night {
	nights := make([]Night, n)
	for i := range nights {
		nights[i] = h.Night(night.Date.AddDate(0, 0, -1-i), zone)
	}
	return nights
}

// Contains reports whether a time is in a night.
func (h NightHours) Contains(at time.Time, zone *time.Location) bool {
	return h.Last(at, zone).Window.Contains(at)
}
