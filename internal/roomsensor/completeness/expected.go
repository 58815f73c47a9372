package completeness

import (
	"time"

	"roomsensor/internal/roomsensor"
)

// Expected returns the part of a window in which readings of a device are expected at now (A3.3): from the start of the
// first expected bucket to the end of the last. It may be empty. units are all installations in the device, in any
// order.
//
// The expected buckets of a part of a window are those that start inside the part. One result therefore serves all
// parts: Expected(w, units, now).Intersect(part).Buckets() counts those of a part.
func Expected(w roomsensor.Window, units []roomsensor.Installation, now time.Time) roomsensor.Window {
	expected := roomsensor.Window{
		From: roomsensor.BucketFrom(w.From), To: roomsensor.Earlier(roomsensor.BucketFrom(w.To), roomsensor.BucketOf(now)),
	}
	if at := firstInstalled(units); at != nil && at.After(expected.From) {
		expected.From = roomsensor.BucketFrom(*at)
	}
	if at := lastRemoved(units, now); at != nil && at.Before(expected.To) {
		expected.To = roomsensor.BucketOf(*at)
	}
	return expected
}

// ExpectedDuring returns what Expected returns within each of some windows, which are in ascending order (A18.2). It
// leaves out those in which nothing is expected.
func ExpectedDuring(
	windows []roomsensor.Window, units []roomsensor.Installation, now time.Time,
) (parts []roomsensor.Window) {
	for _, w := range windows {
		if part := Expected(w, units, now); !part.Empty() {
			parts = append(parts, part)
		}
	}
	return parts
}

// firstInstalled returns when the first of some units was installed; nil if that is unbounded or unknown.
func firstInstalled(units []roomsensor.Installation) (first *time.Time) {
	for i := range units {
		from := units[i].From
		if from == nil {
			return nil
		}
		if first == nil || from.Before(*first) {
			first = from
		}
	}
	return first
}

// lastRemoved returns when the last of some units was removed; nil if one is installed at now, or if no removal is
// known.
func lastRemoved(units []roomsensor.Installation, now time.Time) (last *time.Time) {
	for i := range units {
		if units[i].Covers(now) {
			return nil
		}
		if to := units[i].To; to != nil && !to.After(now) && (last == nil || to.After(*last)) {
			last = to
		}
	}
	return last
}
