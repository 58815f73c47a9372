package completeness

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// CoverageQuery selects a page of the coverage of a team's devices, by device_id ascending (A3).
type CoverageQuery struct {
	roomsensor.DeviceQuery

	Window      roomsensor.Window
	ExternalRef *string   // only the assignments with this external_ref (A18.2)
	Now         time.Time // of the first page (A0.3)
}

// DeviceCoverage is an item of GET /coverage (A3.2).
type DeviceCoverage struct {
	Coverage

	ID               uuid.UUID
	DisplayName      *string
	LastSeenAt       *time.Time
	ActiveAssignment *roomsensor.Assignment // nil without an open assignment
}

// Coverage is what arrived of the expected readings of a device (A3.2).
type Coverage struct {
	Expected, Present int                         // buckets
	First, Last       *time.Time                  // bucket_at of the oldest and the newest reading in Present
	LongestGap        *roomsensor.Window          // of equally long ones the newest; nil if nothing is missing
	Metrics           [roomsensor.MetricCount]int // the readings in Present that have each metric
}

// ratioScale is what the 4 decimals of a ratio count to.
const ratioScale = 10_000

// AppendRatio appends present / expected as JSON, rounded down to 4 decimals, so that 1 means complete. It appends null
// if nothing was expected.
func (c *Coverage) AppendRatio(dst []byte) []byte {
	if c.Expected == 0 {
		return append(dst, "null"...)
	}
	n := c.Present * ratioScale / c.Expected
	dst = strconv.AppendInt(dst, int64(n/ratioScale), 10)
	if n%ratioScale == 0 {
		return dst
	}
	decimals := strconv.Itoa(ratioScale + n%ratioScale)[1:]
	return append(append(dst, '.'), strings.TrimRight(decimals, "0")...)
}

// CoverageCount counts the readings of a device, in any order. It takes a bit of memory for each expected bucket.
type CoverageCount struct {
	parts   []coveragePart
	metrics [roomsensor.MetricCount]int
}

// coveragePart are expected buckets without an interruption.
type coveragePart struct {
	expected roomsensor.Window
	present  []uint64 // bit i is set if expected bucket i has a reading
}

// NewCoverageCount returns a count of the buckets that Expected returned, in ascending order and without overlaps.
func NewCoverageCount(expected ...roomsensor.Window) *CoverageCount {
	c := &CoverageCount{}
	for _, w := range expected {
		c.parts = append(c.parts, coveragePart{w, make([]uint64, (w.Buckets()+63)/64)})
	}
	return c
}

// Add counts a reading with its valid_mask. A reading that is not expected does not count. No bucket may be added
// twice.
func (c *CoverageCount) Add(bucketAt time.Time, mask uint8) {
	for i := range c.parts {
		p := &c.parts[i]
		if !p.expected.Contains(bucketAt) {
			continue
		}
		bucket := int(bucketAt.Sub(p.expected.From) / roomsensor.BucketLength)
		p.present[bucket/64] |= 1 << (bucket % 64)
		for ; mask != 0; mask &= mask - 1 {
			c.metrics[bits.TrailingZeros8(mask)]++
		}
		return
	}
}

// Coverage returns the result. A gap does not reach from one window of expected buckets into another.
func (c *CoverageCount) Coverage() Coverage {
	result := Coverage{Metrics: c.metrics}
	for i := range slices.Backward(c.parts) {
		result.add(&c.parts[i])
	}
	return result
}

// add adds buckets that are older than those added before.
func (c *Coverage) add(p *coveragePart) {
	c.Expected += p.expected.Buckets()
	var first, last time.Time
	present := 0
	search := NewGapSearch(p.expected)
	for i, word := range slices.Backward(p.present) {
		for word != 0 {
			bit := bits.Len64(word) - 1
			word &^= 1 << bit
			first = p.expected.From.Add(time.Duration(64*i+bit) * roomsensor.BucketLength)
			if present++; present == 1 {
				last = first
			}
			c.compare(search.Reading(first))
		}
	}
	c.compare(search.End())
	if present == 0 {
		return
	}
	if c.Last == nil {
		c.Last = new(last)
	}
	c.First = new(first)
	c.Present += present
}

// compare makes a gap the longest one if it is, and if ok is set. Gaps come in the order of a GapSearch.
func (c *Coverage) compare(gap roomsensor.Window, ok bool) {
	if ok && (c.LongestGap == nil || gap.Buckets() > c.LongestGap.Buckets()) {
		c.LongestGap = new(gap)
	}
}
