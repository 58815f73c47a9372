package readings

import (
	"time"

	"roomsensor/internal/roomsensor"
)

// fitter counts the rows of a window and stops above most. It also returns the end of the longest part of the window
// that has room for some rows, which is valid if the count did not stop or the window has one bucket. See ReadingFit.
type fitter func(w roomsensor.Window, room, most int64) (rows int64, until time.Time, err error)

// fitWindow counts the rows of a window that is too large, up to ExportCountCap, and finds the longest window with the
// same start that would fit (decision 30). devices is the number of devices in the window.
func fitWindow(w roomsensor.Window, devices int, fit fitter) (*roomsensor.TooManyRowsError, error) {
	rows, until, err := fit(w, roomsensor.MaxExportRows, roomsensor.ExportCountCap)
	if err != nil {
		return nil, err
	}
	tooMany := &roomsensor.TooManyRowsError{Rows: int(rows)}
	w = w.Intersect(roomsensor.Window{From: w.From, To: w.From.Add(roomsensor.MaxWindow)})
	if rows > roomsensor.ExportCountCap {
		if until, err = fitParts(w, devices, fit); err != nil {
			return nil, err
		}
	}
	if until.After(w.To) {
		until = w.To
	}
	if until.After(w.From) {
		tooMany.FitsUntil = &until
	}
	return tooMany, nil
}

// fitParts returns the end of the longest window with the start of w that would fit. It counts one part after the other
// until the room is used up. A device has at most one row per bucket, so that a short part has at most shortRows, and
// one count finds the end in it. As most devices may be silent, the parts become longer until one does not fit, and
// after that they become shorter. A count of a longer part stops when it does not fit.
func fitParts(w roomsensor.Window, devices int, fit fitter) (time.Time, error) {
	const grow, shrink, shortRows = 4, 2, 2 * roomsensor.MaxExportRows
	room := int64(roomsensor.MaxExportRows)
	short := max(1, shortRows/max(1, devices)) // Buckets.
	overflown := false
	from := roomsensor.BucketOf(w.From.Add(roomsensor.BucketLength - time.Microsecond))
	for buckets := short; from.Before(w.To); {
		end := from.Add(time.Duration(buckets) * roomsensor.BucketLength)
		part := w.Intersect(roomsensor.Window{From: from, To: end})
		most := room
		if buckets <= short {
			most = shortRows
		}
		rows, until, err := fit(part, room, most)
		if err != nil {
			return time.Time{}, err
		}
		if rows > room && (rows <= most || buckets == 1) {
			return until, nil
		}
		if rows > room {
			overflown, w.To = true, part.To
		} else {
			room, from = room-rows, part.To
		}
		if overflown {
			buckets = max(1, buckets/shrink)
		} else {
			buckets *= grow
		}
	}
	return w.To, nil
}
