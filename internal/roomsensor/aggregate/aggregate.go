package aggregate

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Query selects the aggregates of one device in consecutive buckets (A1).
type Query struct {
	Window  roomsensor.Window   // only its readings count, also where it cuts the first and the last bucket (A1.7)
	Buckets []roomsensor.Window // that intersect the window, in any order
	Now     time.Time
}

// ExportQuery selects the aggregates of devices of a team, by bucket_at, then device_id, both ascending (A2).
type ExportQuery struct {
	Window      roomsensor.Window
	Calendar    Calendar
	Devices     []uuid.UUID // ascending, each once
	ExternalRef *string     // only what was measured during assignments with this external_ref (A18.2)
	Metrics     []roomsensor.Metric
	Fill        bool // also buckets without a reading
	CountOnly   bool // count, but do not read the lines
	Now         time.Time
}

// Row is one line of an export of aggregates.
type Row struct {
	Aggregate

	DeviceID uuid.UUID
}

// Export are the lines of an export of aggregates.
type Export interface {
	Rows() int
	// Each calls do with every line, ordered by bucket and device, and stops at the first error of do.
	Each(ctx context.Context, do func(*Row) error) error
}

// Aggregate is what one device measured in the part of a window inside one bucket (A1.6).
type Aggregate struct {
	Bucket            roomsensor.Window // the whole bucket
	Expected, Present int               // 5-minute buckets
	Metrics           [roomsensor.MetricCount]roomsensor.Summary
}

// Tally counts the readings of one device in one bucket, each once and in any order. Its result depends neither on the
// order nor on whether it gets single readings or hours of them. The zero Tally has no readings.
type Tally struct {
	readings int // all
	present  int // the expected ones
	metrics  [roomsensor.MetricCount]metricTally
	broken   bool // whether an hour had a sum that is not finite
}

// metricTally counts the values of one metric.
type metricTally struct {
	min, max float32
	count    int64
	sum      exactSum
	err      float64 // the largest error of the sum
}

// Add adds a reading. expected is whether its bucket is an expected one (A3.3).
func (t *Tally) Add(values *roomsensor.Values, expected bool) {
	t.readings++
	if expected {
		t.present++
	}
	for _, m := range roomsensor.Metrics {
		if x, ok := values.Get(m); ok {
			t.metrics[m].add(x, x, 1, float64(x))
		}
	}
}

// AddHour adds the readings of a whole hour, of which present are expected. If the values of an hour are not all
// finite, neither is their sum.
func (t *Tally) AddHour(stats *roomsensor.Stats, readings, present int) {
	t.readings += readings
	t.present += present
	for m := range stats {
		s := &stats[m]
		switch {
		case s.Count == 0:
		case math.IsNaN(s.Sum) || math.IsInf(s.Sum, 0):
			t.broken = true
		default:
			t.metrics[m].add(s.Min, s.Max, s.Count, s.Sum)
			if !isExact(*s) {
				t.metrics[m].err += sumError(*s)
			}
		}
	}
}

func (t *metricTally) add(least, greatest float32, count int64, sum float64) {
	if t.count == 0 {
		t.min, t.max = least, greatest
	} else {
		t.min, t.max = min(t.min, least), max(t.max, greatest)
	}
	t.count += count
	t.sum.add(sum)
}

// stat returns the result. ok is false if the sum may have an error that changes the mean.
func (t *metricTally) stat() (s roomsensor.Stat, ok bool) {
	if t.count == 0 {
		return roomsensor.Stat{}, true
	}
	// Adding 0 turns -0 into 0, as in a reading.
	s = roomsensor.Stat{Min: t.min + 0, Max: t.max + 0, Sum: t.sum.value(), Count: t.count}
	if t.err == 0 {
		return s, true
	}
	low, high := s, s // The sum itself was rounded once, too.
	low.Sum, high.Sum = math.Nextafter(s.Sum-t.err, math.Inf(-1)), math.Nextafter(s.Sum+t.err, math.Inf(1))
	return s, low.Mean() == high.Mean()
}

// IsEmpty reports whether no reading was added.
func (t *Tally) IsEmpty() bool { return t.readings == 0 }

// Aggregate returns the result for a bucket of which some 5-minute buckets are expected. ok is false if the hours that
// were added do not determine it: their values may not be finite, or the rounding errors of their sums may change a
// mean. The readings determine it always.
func (t *Tally) Aggregate(bucket roomsensor.Window, expected int) (a Aggregate, ok bool) {
	a = Aggregate{Bucket: bucket, Expected: expected, Present: t.present}
	for m := range t.metrics {
		stat, exact := t.metrics[m].stat()
		if !exact || t.broken {
			return Aggregate{}, false
		}
		a.Metrics[m] = stat.Summary()
	}
	return a, true
}
