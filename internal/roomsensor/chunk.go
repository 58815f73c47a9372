package roomsensor

import (
	"iter"
	"slices"
	"time"
)

// MaxNewChunks is how many chunks one upload may create (decision 53 c). Every chunk makes each query that cannot
// exclude it slower, permanently.
const MaxNewChunks = 60

// MaxTeamNewChunks is how many chunks all uploads of a team may create in a day of UTC (decision 53 c): those of two
// uploads. That is more than two years of chunks of a week, or four months of chunks of a day, which a whole fleet that
// was offline may bring. To slow down all queries takes a team weeks, in which the number of chunks shows.
const MaxTeamNewChunks = 2 * MaxNewChunks

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

// New returns when the chunks start that readings of some buckets would create, in ascending order. A new chunk starts
// late where an existing one ends, and ends early where one starts. New allocates nothing if there is none.
func (c *Chunks) New(buckets iter.Seq[time.Time]) (starts []time.Time) {
	var last Window // that contains a bucket; usually, it contains the next one, too
	for bucket := range buckets {
		if !bucket.Before(last.From) && bucket.Before(last.To) {
			continue
		}
		next, _ := slices.BinarySearchFunc(c.Ranges, bucket, func(r Window, at time.Time) int {
			if r.To.After(at) {
				return 1
			}
			return -1
		})
		if next < len(c.Ranges) && !bucket.Before(c.Ranges[next].From) {
			last = c.Ranges[next]
			continue
		}
		last.From = time.Unix(0, 0).UTC().Add(bucket.Sub(time.Unix(0, 0)).Truncate(c.Interval))
		last.To = last.From.Add(c.Interval)
		if next > 0 && c.Ranges[next-1].To.After(last.From) {
			last.From = c.Ranges[next-1].To
		}
		if next < len(c.Ranges) && c.Ranges[next].From.Before(last.To) {
			last.To = c.Ranges[next].From
		}
		if at, found := slices.BinarySearchFunc(starts, last.From, time.Time.Compare); !found {
			starts = slices.Insert(starts, at, last.From)
		}
	}
	return starts
}
