package readings

import (
	"time"

	"roomsensor/internal/roomsensor"
)

// aggregatePiece is a part of a window that is read with one statement: from readings_hourly or from the readings.
type aggregatePiece struct {
	roomsensor.Window

	hourly bool
}

// pieces splits the range of consecutive buckets, within the window, into pieces that are read from readings_hourly and
// pieces that are read from the readings, in ascending order. Hours come from readings_hourly if they are valid there,
// and whole inside the window and one bucket. Days that do not begin and end at the start of a UTC hour come from the
// readings as a whole. So do hours that are too few to save the time of a statement, for a number of devices.
func (a *aggregation) pieces(buckets []roomsensor.Window, devices int) (pieces []aggregatePiece) {
	extent := a.window.Intersect(roomsensor.Window{From: buckets[0].From, To: buckets[len(buckets)-1].To})
	const saved = int(time.Hour/roomsensor.BucketLength) - 1 // Rows for each hour of a device.
	from := extent.From
	for _, hours := range intersectAll(wholeHours(buckets, a.window), a.valid) {
		if int(hours.To.Sub(hours.From)/time.Hour)*saved*devices < a.store.Limits.StatementReadings {
			continue
		}
		if from.Before(hours.From) {
			pieces = append(pieces, aggregatePiece{Window: roomsensor.Window{From: from, To: hours.From}})
		}
		pieces = append(pieces, aggregatePiece{hours, true})
		from = hours.To
	}
	if from.Before(extent.To) {
		pieces = append(pieces, aggregatePiece{Window: roomsensor.Window{From: from, To: extent.To}})
	}
	return pieces
}

// wholeHours returns the hours that are whole inside a window and inside one of some buckets that begin and end at the
// start of an hour.
func wholeHours(buckets []roomsensor.Window, window roomsensor.Window) (hours []roomsensor.Window) {
	for _, bucket := range buckets {
		if !isHour(bucket.From) || !isHour(bucket.To) {
			continue
		}
		w := window.Intersect(bucket)
		w.From, w.To = w.From.Add(time.Hour-1).Truncate(time.Hour), w.To.Truncate(time.Hour)
		if w.Empty() {
			continue
		}
		if last := len(hours) - 1; last >= 0 && hours[last].To.Equal(w.From) {
			hours[last].To = w.To
		} else {
			hours = append(hours, w)
		}
	}
	return hours
}

func isHour(at time.Time) bool { return at.Equal(at.Truncate(time.Hour)) }

// intersectAll returns the overlaps of two lists of windows, each in ascending order and without overlaps.
func intersectAll(a, b []roomsensor.Window) (both []roomsensor.Window) {
	for len(a) > 0 && len(b) > 0 {
		if w := a[0].Intersect(b[0]); !w.Empty() {
			both = append(both, w)
		}
		if a[0].To.Before(b[0].To) {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return both
}
