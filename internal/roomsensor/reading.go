package roomsensor

import "time"

// BucketLength is the time from one reading of a device to the next.
const BucketLength = 5 * time.Minute

// Reading is the served form of one 5-minute bucket of one device (spec 2, Reading).
type Reading struct {
	BucketAt   time.Time
	Values     Values
	IngestedAt time.Time
}

// Measurement is what a device reported for one instant.
type Measurement struct {
	MeasuredAt time.Time // UTC, whole microseconds
	Values     Values
}

// Bucket is the start of the 5-minute bucket that contains the measurement (decision 37).
func (m *Measurement) Bucket() time.Time { return BucketOf(m.MeasuredAt) }

// BucketOf is the start of the 5-minute bucket that contains an instant.
func BucketOf(at time.Time) time.Time { return at.UTC().Truncate(BucketLength) }

// Unite merges two measurements of one bucket of one device: the later one is
// the reading, as a whole; two deliveries of the same measurement unite per
// metric, where a null never erases a value and the greater of two values
// stays (decision 37). It is commutative, associative and idempotent, which is
// why neither order nor repetition of uploads can matter (decision 38).
func Unite(a, b Measurement) Measurement {
	switch {
	case a.MeasuredAt.After(b.MeasuredAt):
		return a
	case b.MeasuredAt.After(a.MeasuredAt):
		return b
	}
	for _, m := range Metrics {
		theirs, ok := b.Values.Get(m)
		if !ok {
			continue
		}
		if ours, ok := a.Values.Get(m); !ok || theirs > ours {
			a.Values.Set(m, theirs)
		}
	}
	return a
}
