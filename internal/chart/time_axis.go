package chart

import (
	"strings"
	"time"

	"roomsensor/internal/roomsensor/aggregate"
)

const day = 24 * time.Hour

// tick is a mark of the time axis.
type tick struct {
	at    time.Time
	label string
	below string // the second line of the label, such as the date below an hour
	// wide means that the first line has room on a wide screen only.
	wide bool
}

// timeUnit is the distance of two ticks in local time.
type timeUnit struct {
	minutes, days, weeks, months int // one of them is not 0
}

// timeUnits has the distance of ticks for windows up to a length. The ticks of coarse, which is a multiple of fine,
// have labels on narrow screens too.
var timeUnits = []struct {
	length       time.Duration
	fine, coarse timeUnit
}{
	{time.Hour, timeUnit{minutes: 5}, timeUnit{minutes: 15}},
	{4 * time.Hour, timeUnit{minutes: 30}, timeUnit{minutes: 60}},
	{14 * time.Hour, timeUnit{minutes: 60}, timeUnit{minutes: 180}},
	{26 * time.Hour, timeUnit{minutes: 120}, timeUnit{minutes: 360}},
	{3*day + 2*time.Hour, timeUnit{minutes: 360}, timeUnit{days: 1}},
	{8 * day, timeUnit{days: 1}, timeUnit{days: 2}},
	{16 * day, timeUnit{days: 2}, timeUnit{days: 4}},
	{36 * day, timeUnit{weeks: 1}, timeUnit{weeks: 1}},
	{100 * day, timeUnit{weeks: 1}, timeUnit{weeks: 4}},
	{400 * day, timeUnit{months: 1}, timeUnit{months: 3}},
	{1200 * day, timeUnit{months: 3}, timeUnit{months: 12}},
	{4000 * day, timeUnit{months: 12}, timeUnit{months: 36}},
}

// timeTicks returns the ticks of the window, at most 30. A window that is longer than 4000 days has none.
func (l *Line) timeTicks() []tick {
	length := l.Window.To.Sub(l.Window.From)
	for _, u := range timeUnits {
		if length > u.length {
			continue
		}
		if u.fine.minutes > 0 {
			return l.clockTicks(u.fine, u.coarse)
		}
		return l.dateTicks(u.fine, u.coarse)
	}
	return nil
}

// clockTicks returns ticks at local hours and minutes. An hour that a day has twice has two ticks, if there is room.
func (l *Line) clockTicks(fine, coarse timeUnit) (ticks []tick) {
	const grid = 5 * time.Minute // All clocks of today are changed at a multiple of it.
	var lastDate time.Time
	for at := l.Window.From.Truncate(grid); at.Before(l.Window.To); at = at.Add(grid) {
		local, before := at.In(l.Zone), at.Add(-grid).In(l.Zone)
		begin := local.Day() != before.Day()
		if at.Before(l.Window.From) || !begin && !fine.hasClock(local) {
			continue
		}
		t := tick{at: at, label: l.clock(local), wide: !begin && !coarse.hasClock(local)}
		if begin || lastDate.IsZero() {
			t.below = l.time(local, "Mon 2 Jan")
			// The date of the first tick is left out if that of the next day needs its place.
			if len(ticks) > 0 && at.Sub(lastDate) < l.Window.To.Sub(l.Window.From)/4 {
				ticks[0].below = ""
			}
			lastDate = at
		}
		if n := len(ticks); n > 0 && ticks[n-1].label == t.label && fine.minutes > 60 {
			continue
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// clock returns the label of a time of day. Whole hours of 12 are short: 3 PM.
func (l *Line) clock(local time.Time) string {
	return strings.Replace(l.time(local, "15:04"), ":00 ", " ", 1)
}

// hasClock reports whether a local time of day is a multiple of the unit.
func (u timeUnit) hasClock(local time.Time) bool {
	return u.minutes > 0 && (60*local.Hour()+local.Minute())%u.minutes == 0
}

// dateTicks returns ticks at the first instants of local dates, which need not be midnight.
func (l *Line) dateTicks(fine, coarse timeUnit) (ticks []tick) {
	year := 0
	for date := range aggregate.NewCalendar(aggregate.Daily, l.Zone).Buckets(l.Window) {
		local := date.From.In(l.Zone)
		if date.From.Before(l.Window.From) || !fine.hasDate(local) {
			continue
		}
		t := tick{at: date.From, label: l.time(local, "2 Jan"), wide: !coarse.hasDate(local)}
		if fine.days > 0 {
			t.below = local.Format("Mon")
		}
		if fine.months > 0 {
			t.label = local.Format("Jan")
		}
		if fine.months > 0 && local.Year() != year {
			year = local.Year()
			t.below = local.Format("2006")
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// hasDate reports whether a local date is a multiple of the unit. Weeks begin on Mondays.
func (u timeUnit) hasDate(local time.Time) bool {
	year, month, date := local.Date()
	monday := time.Date(1970, time.January, 5, 0, 0, 0, 0, time.UTC)
	days := int(time.Date(year, month, date, 0, 0, 0, 0, time.UTC).Sub(monday) / day)
	switch {
	case u.days > 0:
		return days%u.days == 0
	case u.weeks > 0:
		return days%(7*u.weeks) == 0
	}
	return date == 1 && (12*year+int(month)-1)%u.months == 0
}
