package export

import (
	"bytes"
	"slices"
	"time"

	"github.com/google/uuid"
)

const (
	// maxRows is the limit of readings in one response (decision 30).
	maxRows = 250_000
	// countCap is where the service stops to count the readings of a response that is too large (decision 30 d).
	countCap = 1_000_000
	// maxWindow is the widest window of one request (spec 8, Time range).
	maxWindow = 90 * 24 * time.Hour
	// maxNamed is the limit of ids in the parameter devices (decision 31 e).
	maxNamed = 1000
	// bucketLength is the interval at which a device measures: a device has at most one reading per bucket.
	bucketLength = 5 * time.Minute

	// splitParts is the number of parts of a window that has more than countCap readings and could need more than
	// directParts: many devices may have no readings in most of them.
	splitParts  = 8
	directParts = 16
	// splitRows is the number of readings that a part of a window with a known count should have. The rest up to maxRows
	// is for readings that are spread unevenly.
	splitRows = maxRows * 4 / 5
)

// segment is a window whose readings are requested together, with one request for each group of devices. Segments are
// half-open, in the order of time, and without gaps.
type segment struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	File int       `json:"file,omitempty"` // index of the output file
}

// buckets returns the number of 5-minute buckets that start in the segment.
func (s segment) buckets() int64 { return gridIndex(s.To) - gridIndex(s.From) }

// gridIndex numbers the buckets. It returns the number of the first bucket that starts at or after a time.
func gridIndex(at time.Time) int64 {
	first := at.Truncate(bucketLength)
	if first.Before(at) {
		first = first.Add(bucketLength)
	}
	return first.Unix() / int64(bucketLength/time.Second)
}

// parts returns how many parts of at most maxRows readings the segment can need.
func (s segment) parts(devices int) int64 {
	return (s.buckets()*int64(max(devices, 1)) + maxRows - 1) / maxRows
}

// planSegments divides a window into segments of one request for each group of devices. With one group, segments are as
// wide as a request may be, so that a span without readings costs one request; split divides those with too many
// readings. With more groups, no segment can exceed maxRows: devices is the number of devices of the largest group.
// With byMonth, each month (UTC) has a file and segments of its own.
func planSegments(from, to time.Time, devices, groups int, byMonth bool) (segments []segment) {
	length := maxWindow
	if groups > 1 {
		length = min(length, time.Duration(max(maxRows/devices, 1))*bucketLength)
	}
	file := 0
	for from.Before(to) {
		end := earlier(from.Add(length), to)
		month := nextMonth(from)
		if byMonth {
			end = earlier(end, month)
		}
		segments = append(segments, segment{from, end, file})
		if byMonth && end.Equal(month) {
			file++
		}
		from = end
	}
	return segments
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// nextMonth returns the start of the next month in UTC.
func nextMonth(at time.Time) time.Time {
	return time.Date(at.UTC().Year(), at.UTC().Month()+1, 1, 0, 0, 0, 0, time.UTC)
}

// split divides a segment that has too many readings. count is their number, or 0 if the service did not count them.
// It returns nil if the segment is a single bucket.
func (s segment) split(devices, count int) (segments []segment) {
	buckets := s.buckets()
	n := s.parts(devices)
	switch {
	case count > maxRows && count <= countCap:
		n = int64((count + splitRows - 1) / splitRows)
	case n > directParts:
		n = splitParts
	}
	n = max(n, 2)
	if buckets < 2 {
		return nil
	}
	length := time.Duration((buckets+n-1)/n) * bucketLength
	for from := s.From; from.Before(s.To); from = from.Add(length) {
		segments = append(segments, segment{from, earlier(from.Add(length), s.To), s.File})
	}
	return segments
}

// groupDevices divides ids into groups of one request each, in the order of the ids. Ids that occur twice count once.
func groupDevices(ids []uuid.UUID) []group {
	sorted := slices.SortedFunc(slices.Values(ids), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Collect(slices.Chunk(slices.Compact(sorted), maxNamed))
}
