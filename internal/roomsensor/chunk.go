package roomsensor

import (
	"slices"
	"time"
)

// MaxNewChunks is how many chunks one upload may create (decision 53 c). Every chunk makes each query that cannot
// exclude it slower, permanently.
const MaxNewChunks = 60

const (
	// readingsPerDay is how many readings a device has a day, one for each bucket.
	readingsPerDay = int64(24 * time.Hour / BucketLength)
	// indexBytesPerReading is what the key index of a chunk takes per reading, measured with readings in the order of
	// arrival (docs/operate/timescaledb.md).
	indexBytesPerReading = 69
)

// DailyIndexBytes returns by how many bytes the key index of the newest chunk grows in a day.
func DailyIndexBytes(devices int64) int64 { return devices * readingsPerDay * indexBytesPerReading }

// FittingChunkInterval returns the longest length of chunks, of 7, 3 and 1 days, with which the key index of the newest
// chunk fits into some bytes of memory, and a day if none does. The readings of a batch go to as many places of the
// index as there are devices, so that uploads are fast while it stays in memory. More chunks make every query slower to
// plan, and chunks of more than 7 days save too few of them to be worth a longer rewrite of each.
func FittingChunkInterval(dailyIndexBytes, memory int64) time.Duration {
	const day = 24 * time.Hour
	for _, days := range []int64{7, 3} {
		if dailyIndexBytes <= memory/days {
			return time.Duration(days) * day
		}
	}
	return day
}

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
