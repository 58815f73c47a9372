package config

import (
	"cmp"
	"strings"
	"time"

	"github.com/rs/zerolog"
)

// Maintenance says when workers put old chunks in the order of their key. A
// chunk is locked meanwhile, so that they do so only when they are told a time.
type Maintenance struct {
	MaintainAfter  string `default:"14d"   help:"Age from which chunks are put in order, longer than devices buffer readings." placeholder:"TIME" setting:""`
	MaintainWindow string `default:"never" help:"Hours of the day, in UTC, in which chunks are put in order, for example 02:00-04:00, or never." placeholder:"FROM-TO" setting:""`
}

// The defaults, for those who do not come from the command line.
const (
	defaultMaintainAfter  = "14d"
	defaultMaintainWindow = never
)

// hourOfDay is how both ends of the window are written.
const hourOfDay = "15:04"

// validateMaintenance checks the values; an empty one is the default.
func (c *Maintenance) validateMaintenance() error {
	if age, ok := parseLength(c.after()); !ok || age < leastLayout {
		return &ValueError{Flag: "maintain-after", Reason: "must be a whole number followed by m, h or d, at least 1d"}
	}
	if _, _, ok := c.hours(); !ok {
		return &ValueError{
			Flag:   "maintain-window",
			Reason: "must be two different times of the day, in UTC, for example 02:00-04:00, or the word never",
		}
	}
	return nil
}

func (c *Maintenance) after() string  { return cmp.Or(c.MaintainAfter, defaultMaintainAfter) }
func (c *Maintenance) window() string { return cmp.Or(c.MaintainWindow, defaultMaintainWindow) }

// SettledAfter is the age from which chunks are put in order.
func (c *Maintenance) SettledAfter() time.Duration {
	age, _ := parseLength(c.after())
	return age
}

// Maintains reports whether chunks may be put in order at an instant. A window
// may reach over midnight.
func (c *Maintenance) Maintains(now time.Time) bool {
	from, to, _ := c.hours()
	at := now.UTC().Sub(now.UTC().Truncate(24 * time.Hour))
	if from <= to {
		return from <= at && at < to
	}
	return at >= from || at < to
}

// hours are the ends of the window, as the time since midnight; never is an
// empty one.
func (c *Maintenance) hours() (from, to time.Duration, ok bool) {
	if c.window() == never {
		return 0, 0, true
	}
	first, last, found := strings.Cut(c.window(), "-")
	from, fromOK := sinceMidnight(first)
	to, toOK := sinceMidnight(last)
	return from, to, found && fromOK && toOK && from != to
}

func sinceMidnight(text string) (time.Duration, bool) {
	at, err := time.Parse(hourOfDay, text)
	ok := err == nil && len(text) == len(hourOfDay)
	return time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute, ok
}

// MarshalZerologObject logs the configuration.
func (c *Maintenance) MarshalZerologObject(e *zerolog.Event) {
	e.Str("maintain_after", c.after()).Str("maintain_window", c.window())
}
