package completeness

import (
	"strconv"
	"time"

	"roomsensor/internal/roomsensor"
)

const (
	// minParameter is the parameter that leaves out short gaps (A4.1).
	minParameter = "min"
	// MaxMinGap is the largest value of min (A4.1).
	MaxMinGap = 3660 * 24 * time.Hour
)

// GapQuery selects gaps of a device, the newest first (A4).
type GapQuery struct {
	Window roomsensor.Window
	Now    time.Time     // of the first page (A0.3)
	Min    time.Duration // shorter gaps are left out
	Before *time.Time    // where the previous page ended; nil on the first page
}

// ParseMinGap parses the parameter min: a positive decimal integer followed by m, h or d, at most MaxMinGap. nil means
// that it was not sent: the default is one bucket, so that no gap is left out. Its error is validation_failed.
func ParseMinGap(text *string) (time.Duration, error) {
	if text == nil {
		return roomsensor.BucketLength, nil
	}
	shortest, ok := roomsensor.ParseLength(*text, MaxMinGap)
	if !ok {
		return 0, roomsensor.Invalid(minParameter, "min must be a whole number above 0 followed by m, h or d, at most "+
			strconv.Itoa(int(MaxMinGap/(24*time.Hour)))+"d, for example min=1h.")
	}
	return shortest, nil
}

// GapSearch finds the gaps of a device, the newest first. A gap is a longest run of consecutive expected buckets
// without a reading, from the start of the first bucket to the end of the last (A4.2). The caller passes the readings
// of the device, the newest first. Every expected bucket is then either that of a reading or in exactly one gap.
type GapSearch struct {
	rest roomsensor.Window
}

// NewGapSearch returns a search of the buckets that Expected returned.
func NewGapSearch(expected roomsensor.Window) *GapSearch { return &GapSearch{expected} }

// Rest returns the buckets that were not searched yet, which are older than the last reading.
func (s *GapSearch) Rest() roomsensor.Window { return s.rest }

// Reading takes the next older reading, and returns the gap between it and the one before. ok is false if there is
// none. Readings that are not expected do not count.
func (s *GapSearch) Reading(bucketAt time.Time) (gap roomsensor.Window, ok bool) {
	if bucketAt.Before(s.rest.From) || !bucketAt.Before(s.rest.To) {
		return roomsensor.Window{}, false
	}
	gap = roomsensor.Window{From: bucketAt.Add(roomsensor.BucketLength), To: s.rest.To}
	s.rest.To = bucketAt
	return gap, !gap.Empty()
}

// End takes the end of the readings, and returns the gap before the oldest one. ok is false if there is none.
func (s *GapSearch) End() (gap roomsensor.Window, ok bool) {
	gap = s.rest
	s.rest.To = s.rest.From
	return gap, !gap.Empty()
}
