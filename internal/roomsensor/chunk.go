package roomsensor

import (
	"slices"
	"time"
)

// MaxNewChunks is how many chunks one upload may create (decision 53 c). Every chunk makes each query that cannot
// exclude it slower, permanently.
const MaxNewChunks = 60

// Chunks describes the chunks of the readings.
type Chunks struct {
	Interval time.Duration // of new chunks; a chunk starts at a multiple of it since 1970
	Ranges   []Window      // of the existing chunks, which do not overlap, in ascending order
}

// CountNew returns how many chunks readings of some buckets would create. A new chunk ends early where an existing one
// starts.
func (c *Chunks) CountNew(buckets []time.Time) int {
	type place struct {
		interval int64 // since 1970
		before   int   // existing chunks before it
	}
	created := map[place]struct{}{}
	for _, bucket := range buckets {
		next, _ := slices.BinarySearchFunc(c.Ranges, bucket, func(r Window, at time.Time) int {
			if r.To.After(at) {
				return 1
			}
			return -1
		})
		if next == len(c.Ranges) || bucket.Before(c.Ranges[next].From) {
			created[place{bucket.Unix() / int64(c.Interval.Seconds()), next}] = struct{}{}
		}
	}
	return len(created)
}
