package roomsensor

import "time"

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
	at := reach(zone, wall)
	_, offset := at.In(zone).Zone()
	clock := wall.Format("15:04 on 2 Jan 2006")
	switch {
	case !at.Add(time.Duration(offset) * time.Second).Equal(wall):
		return time.Time{}, Invalid(param, "The time "+clock+" does not exist in "+zone.String()+
			", because the clock is set forward over it. Enter an earlier or a later time.")
	case !at.Equal(leave(zone, wall)):
		return time.Time{}, Invalid(param, "The time "+clock+" occurs twice in "+zone.String()+
			", because the clock is set back over it. Enter a time before or after the repeated hour.")
	}
	return at, nil
}
