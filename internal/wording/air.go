package wording

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
)

// VerdictText is a verdict for people.
type VerdictText struct{ Key, Text, Badge string }

// VerdictTextOf returns a verdict for people.
func VerdictTextOf(v airquality.Verdict) VerdictText {
	return [...]VerdictText{
		airquality.Unknown: {"unknown", "Unknown", "off"},
		airquality.Good:    {"good", "Good", "ok"},
		airquality.Stuffy:  {"stuffy", "Stuffy", "warn"},
		airquality.Bad:     {"bad", "Bad", "bad"},
	}[v]
}

// LimitText says in words which values of a metric are not fine, in the unit in which a team enters its limits.
func LimitText(m roomsensor.Metric, l airquality.Limit) string {
	if l.IsZero() {
		return "no limit"
	}
	unit := "\u00a0" + MetricTexts[m].Unit
	outside := func(low, high *float32) string {
		switch {
		case low == nil:
			return "above " + airquality.FormatLimit(high) + unit
		case high == nil:
			return "below " + airquality.FormatLimit(low) + unit
		}
		return "below " + airquality.FormatLimit(low) + " or above " + airquality.FormatLimit(high) + unit
	}
	text := "stuffy " + outside(l.Low.Warn, l.High.Warn)
	if l.Low.Bad != nil || l.High.Bad != nil {
		text += ", bad " + outside(l.Low.Bad, l.High.Bad)
	}
	return text
}

// HoursAndMinutes returns a duration such as "2 h 35 min".
func HoursAndMinutes(d time.Duration) string {
	hours, minutes := int(d/time.Hour), int(d%time.Hour/time.Minute)
	switch {
	case hours == 0:
		return strconv.Itoa(minutes) + "\u00a0min"
	case minutes == 0:
		return strconv.Itoa(hours) + "\u00a0h"
	}
	return fmt.Sprintf("%d\u00a0h\u00a0%d\u00a0min", hours, minutes)
}

// Beyond says for how long a metric was beyond a limit.
func (f Format) Beyond(c airquality.Cause) string {
	return HoursAndMinutes(c.For) + " " + side(c.High) + " " + f.Limit(c.Metric, c.Limit)
}

func side(high bool) string {
	if high {
		return "above"
	}
	return "below"
}

// remedies are what people can do about a metric that is too low or too high.
var remedies = [roomsensor.MetricCount]struct{ low, high string }{
	roomsensor.CO2:      {"check the sensor", "open the window or the door before sleeping"},
	roomsensor.Temp:     {"heat the room, or close the window at night", "air the room in the evening, or heat it less"},
	roomsensor.Humidity: {"air the room for less time, or use a humidifier", "air the room in the evening and morning"},
	roomsensor.Lux:      {"open the curtains", "darken the room"},
	roomsensor.Sound:    {"check the sensor", "close the window on the side of the noise"},
}

// Advice says in one sentence what a night was like, and what to do about it.
func (f Format) Advice(r *airquality.NightResult, limits *airquality.Limits) string {
	verdict := r.Verdict()
	if c, ok := r.Cause(verdict, limits); ok && verdict >= airquality.Stuffy {
		remedy := remedies[c.Metric].low
		if c.High {
			remedy = remedies[c.Metric].high
		}
		return fmt.Sprintf("%s was %s %s for %s: %s.",
			MetricTexts[c.Metric].Name, side(c.High), f.Limit(c.Metric, c.Limit), HoursAndMinutes(c.For), remedy)
	}
	switch {
	case verdict == airquality.Good:
		return "The air was good."
	case r.Expected == 0:
		return "No readings are expected."
	case r.Present == 0:
		return "No readings arrived: check that the device has power and a connection."
	case r.Judged == 0:
		return "No metric that has a limit was measured: check the device."
	}
	return fmt.Sprintf("Only %d of %s arrived: check the connection of the device.", r.Present,
		Plural(r.Expected, "reading"))
}

// verdictCounts are the numbers of rooms by verdict.
type verdictCounts [airquality.Bad + 1]int

func (c verdictCounts) total() (n int) {
	for _, rooms := range c {
		n += rooms
	}
	return n
}

// NightSummary answers whether the bedrooms were fine, or all rooms if no athlete has one, and what the others were
// like.
func NightSummary(rooms []airquality.NightRoom, when string) (headline, others string) {
	var bedrooms, places verdictCounts
	for i := range rooms {
		counts := &places
		if rooms[i].Assignment.Type == roomsensor.Athlete {
			counts = &bedrooms
		}
		counts[rooms[i].Verdict()]++
	}
	switch {
	case len(rooms) == 0:
		return "", ""
	case bedrooms.total() == 0:
		return places.answer("room") + " " + when, ""
	case places.total() == 0:
		return bedrooms.answer("bedroom") + " " + when, ""
	}
	return bedrooms.answer("bedroom") + " " + when, "Other rooms: " + places.list() + "."
}

// answer says what the rooms were like, and begins with the worst.
func (c verdictCounts) answer(kind string) string {
	total := c.total()
	of := strconv.Itoa(total) + " " + kind + "s"
	if total == 1 {
		of = kind
	}
	had := func(n int, air string) string {
		if total == 1 {
			return "The " + kind + " had " + air
		}
		return fmt.Sprintf("%d of %s had %s", n, of, air)
	}
	var text string
	switch {
	case c[airquality.Bad] > 0:
		text = had(c[airquality.Bad], "bad air")
		if n := c[airquality.Stuffy]; n > 0 {
			text += fmt.Sprintf(", %d stuffy air", n)
		}
	case c[airquality.Stuffy] > 0:
		text = had(c[airquality.Stuffy], "stuffy air")
	case c[airquality.Unknown] == total:
		return "Nothing is known of the " + of
	case c[airquality.Unknown] > 0:
		return had(c[airquality.Good], "good air") + ", and nothing is known of " + strconv.Itoa(c[airquality.Unknown])
	case total == 1:
		return had(1, "good air")
	default:
		return "All " + of + " had good air"
	}
	if n := c[airquality.Unknown]; n > 0 {
		text += fmt.Sprintf(", and nothing is known of %d", n)
	}
	return text
}

// list says how many rooms had each verdict, the worst first.
func (c verdictCounts) list() string {
	var parts []string
	for _, v := range []airquality.Verdict{airquality.Bad, airquality.Stuffy, airquality.Unknown, airquality.Good} {
		if c[v] > 0 {
			parts = append(parts, strconv.Itoa(c[v])+" "+strings.ToLower(VerdictTextOf(v).Text))
		}
	}
	return strings.Join(parts, ", ")
}
