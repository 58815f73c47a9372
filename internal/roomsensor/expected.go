package roomsensor

import "time"

// Buckets returns how many 5-minute buckets start inside the window.
func (w Window) Buckets() int {
	from, to := bucketFrom(w.From), bucketFrom(w.To)
	// The window of an assignment may be longer than a Duration.
	return max(0, int((to.Unix()-from.Unix())/int64(BucketLength/time.Second)))
}

// bucketFrom returns the start of the first 5-minute bucket that does not start before a time.
func bucketFrom(at time.Time) time.Time {
	bucket := BucketOf(at)
	if bucket.Before(at) {
		return bucket.Add(BucketLength)
	}
	return bucket
}

// Expected returns the part of a window in which readings of a device are expected at now (A3.3): from the start of the
// first expected bucket to the end of the last. It may be empty. units are all installations in the device, in any
// order.
//
// The expected buckets of a part of a window are those that start inside the part. One result therefore serves all
// parts: Expected(w, units, now).Intersect(part).Buckets() counts those of a part.
func Expected(w Window, units []Installation, now time.Time) Window {
	expected := Window{From: bucketFrom(w.From), To: bucketFrom(w.To)}
	if ended := BucketOf(now); ended.Before(expected.To) {
		expected.To = ended
	}
	if at := firstInstalled(units); at != nil && at.After(expected.From) {
		expected.From = bucketFrom(*at)
	}
	if at := lastRemoved(units, now); at != nil && at.Before(expected.To) {
		expected.To = BucketOf(*at)
	}
	return expected
}

// ExpectedDuring returns what Expected returns within each of some windows, which are in ascending order (A18.2). It
// leaves out those in which nothing is expected.
func ExpectedDuring(windows []Window, units []Installation, now time.Time) (parts []Window) {
	for _, w := range windows {
		if part := Expected(w, units, now); !part.Empty() {
			parts = append(parts, part)
		}
	}
	return parts
}

// firstInstalled returns when the first of some units was installed; nil if that is unbounded or unknown.
func firstInstalled(units []Installation) (first *time.Time) {
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
func lastRemoved(units []Installation, now time.Time) (last *time.Time) {
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
