package airquality

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// NightChange is a number of nights of devices that belong to another assignment after a change.
type NightChange struct {
	From, To *roomsensor.Assignment // nil for none
	Nights   int
	Partial  int // of them, those of which only a part changes
}

// nightHolder is to whom or to what a part of a night belongs: a person, or a place by its label; zero for nobody.
type nightHolder struct {
	kind roomsensor.AssignmentType
	key  roomsensor.PersonKey
}

func holderOf(a *roomsensor.Assignment) nightHolder {
	if a == nil {
		return nightHolder{}
	}
	if key, ok := a.Person(); ok {
		return nightHolder{a.Type, key}
	}
	return nightHolder{a.Type, roomsensor.PersonKey{Label: a.Label}}
}

// NightChanges counts the nights that begin up to now and belong to somebody else when some assignments are replaced by
// others. The assignments of a device must not overlap on either side. It needs no readings.
func NightChanges(
	before, after []roomsensor.Assignment, hours NightHours, zone *time.Location, now time.Time,
) []NightChange {
	var devices []uuid.UUID
	for _, a := range slices.Concat(before, after) {
		devices = append(devices, a.DeviceID)
	}
	slices.SortFunc(devices, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	c := nightCounter{hours: hours, zone: zone, now: now}
	for _, device := range slices.Compact(devices) {
		c.add(ofDevice(before, device), ofDevice(after, device))
	}
	return c.changes
}

func ofDevice(all []roomsensor.Assignment, device uuid.UUID) (found []*roomsensor.Assignment) {
	for i := range all {
		if all[i].DeviceID == device {
			found = append(found, &all[i])
		}
	}
	return found
}

// nightCounter counts the nights of one device after the other.
type nightCounter struct {
	hours   NightHours
	zone    *time.Location
	now     time.Time
	changes []NightChange
}

// add counts the nights of a device, the newest first.
func (c *nightCounter) add(before, after []*roomsensor.Assignment) {
	window := roomsensor.Window{From: c.now}
	var cuts []time.Time
	for _, a := range slices.Concat(before, after) {
		w := a.Window()
		cuts = append(cuts, w.From, w.To)
		window.From, window.To = roomsensor.Earlier(window.From, w.From), roomsensor.Later(window.To, w.To)
	}
	slices.SortFunc(cuts, time.Time.Compare)
	window.To = roomsensor.Earlier(window.To, c.now)
	night := c.hours.Last(window.To, c.zone)
	for night.Window.To.After(window.From) {
		c.addNight(night.Window.Intersect(roomsensor.Window{To: c.now}), cuts, before, after)
		night = c.hours.Night(night.Date.AddDate(0, 0, -1), c.zone)
	}
}

// addNight counts a night once for each pair of holders between which a part of it moves.
func (c *nightCounter) addNight(night roomsensor.Window, cuts []time.Time, before, after []*roomsensor.Assignment) {
	parts := map[int]time.Duration{} // by index of the change
	part := roomsensor.Window{From: night.From}
	for _, cut := range append(slices.Clone(cuts), night.To) {
		if !cut.After(part.From) {
			continue
		}
		part.To = cut
		if cut.After(night.To) {
			part.To = night.To
		}
		from, to := at(before, part.From), at(after, part.From)
		if !part.Empty() && holderOf(from) != holderOf(to) {
			parts[c.index(from, to)] += part.To.Sub(part.From)
		}
		part.From = part.To
	}
	for i, length := range parts {
		c.changes[i].Nights++
		if length < night.To.Sub(night.From) {
			c.changes[i].Partial++
		}
	}
}

// at returns the assignment at an instant, or nil.
func at(all []*roomsensor.Assignment, instant time.Time) *roomsensor.Assignment {
	for _, a := range all {
		if a.Window().Contains(instant) {
			return a
		}
	}
	return nil
}

// index returns the index of the change between two holders, which it adds if there is none.
func (c *nightCounter) index(from, to *roomsensor.Assignment) int {
	for i := range c.changes {
		if holderOf(c.changes[i].From) == holderOf(from) && holderOf(c.changes[i].To) == holderOf(to) {
			return i
		}
	}
	c.changes = append(c.changes, NightChange{From: from, To: to})
	return len(c.changes) - 1
}

// String returns a sentence without a period, such as "12 nights move from Ana Ruiz to Maya Okafor".
func (c *NightChange) String() string {
	nights, move, lose, get := fmt.Sprintf("%d nights", c.Nights), "move", "lose", "get"
	if c.Nights == 1 {
		nights, move, lose, get = "1 night", "moves", "loses", "gets"
	}
	suffix := ""
	switch {
	case c.Partial == c.Nights && c.Nights == 1:
		nights = "A part of " + nights
	case c.Partial == c.Nights:
		nights = "Parts of " + nights
	case c.Partial > 0:
		suffix = fmt.Sprintf(", %d of them in part", c.Partial)
	}
	switch {
	case c.To == nil:
		return fmt.Sprintf("%s of %s %s the assignment%s", nights, c.From.Label, lose, suffix)
	case c.From == nil:
		return fmt.Sprintf("%s %s the assignment %s%s", nights, get, c.To.Label, suffix)
	}
	from, to := c.From.Label, c.To.Label
	if roomsensor.FoldLabel(from) == roomsensor.FoldLabel(to) {
		from, to = detailed(c.From), detailed(c.To)
	}
	return fmt.Sprintf("%s %s from %s to %s%s", nights, move, from, to, suffix)
}

// detailed returns the label with what else tells assignments with the same label apart.
func detailed(a *roomsensor.Assignment) string {
	if a.ExternalRef == nil {
		return fmt.Sprintf("%s (%s without a reference)", a.Label, a.Type)
	}
	return fmt.Sprintf("%s (%s with the reference %s)", a.Label, a.Type, *a.ExternalRef)
}
