package roomsensor

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Metric is one of the quantities that a device measures. Its number is its position among the CSV columns and its
// bit in valid_mask (spec 2, CSV row; decision 28).
type Metric uint8

// The metrics in the order of spec 2.
const (
	CO2      Metric = iota // parts per million
	Temp                   // degrees Celsius
	Humidity               // percent of relative humidity
	Lux                    // lux
	Sound                  // decibels
)

// MetricCount is the number of metrics.
const MetricCount = 5

// Metrics lists every metric in order.
var Metrics = [MetricCount]Metric{CO2, Temp, Humidity, Lux, Sound}

// metricRules holds the name of each metric in the API and its plausible range, both ends included (decision 41).
var metricRules = [MetricCount]struct {
	name     string
	min, max float64
}{
	CO2:      {"co2_ppm", 0, 100000},
	Temp:     {"temp_c", -90, 90},
	Humidity: {"humidity_pct", 0, 100},
	Lux:      {"lux", 0, 200000},
	Sound:    {"spl_db", 0, 200},
}

// String returns the name of the metric in the API, in uploads and in the tables.
func (m Metric) String() string { return metricRules[m].name }

// Range returns the plausible range of the metric, both ends included (decision 41).
func (m Metric) Range() (least, greatest float64) {
	return metricRules[m].min, metricRules[m].max
}

// MetricNamed returns the metric with a name.
func MetricNamed(name string) (Metric, bool) {
	for _, m := range Metrics {
		if metricRules[m].name == name {
			return m, true
		}
	}
	return 0, false
}

// ParseMetrics parses the parameter metrics, a comma-separated list of names in any order (A1.4); nil means that it was
// not sent, which selects all metrics. The result is in the order of Metrics. An empty, repeated or unknown name is
// validation_failed.
func ParseMetrics(text *string) ([]Metric, error) {
	if text == nil {
		return slices.Clone(Metrics[:]), nil
	}
	var found [MetricCount]bool
	for name := range strings.SplitSeq(*text, ",") {
		m, ok := MetricNamed(name)
		if !ok || found[m] {
			return nil, Invalid("metrics", "metrics must be a list of metrics separated by commas, each once: "+
				"co2_ppm, temp_c, humidity_pct, lux, spl_db."+meantMetric(name))
		}
		found[m] = true
	}
	selected := slices.Clone(Metrics[:])
	return slices.DeleteFunc(selected, func(m Metric) bool { return !found[m] }), nil
}

// meantMetric returns a question about the metric that a name without its unit probably means, or "".
func meantMetric(name string) string {
	for _, m := range Metrics {
		quantity, unit, _ := strings.Cut(m.String(), "_")
		if unit != "" && strings.HasPrefix(strings.ToLower(name), quantity) && name != m.String() {
			return " Did you mean " + m.String() + "?"
		}
	}
	return ""
}

// ParseMaxAge parses the parameter max_age, the greatest age of the newest values of GET /metrics: 5m to 24h, 15m if it
// was not sent (A20.1). Its error is validation_failed.
func ParseMaxAge(text *string) (time.Duration, error) {
	const usual, longest = 15 * time.Minute, 24 * time.Hour
	if text == nil {
		return usual, nil
	}
	age, ok := ParseLength(*text, longest)
	if !ok || age < BucketLength {
		return 0, Invalid("max_age",
			"max_age must be 5m to 24h, a whole number followed by m, h or d, for example max_age=30m.")
	}
	return age, nil
}

// Values holds the metrics of one measurement, each of which may be absent (spec 1, convention 2). The zero Values has
// none. Two Values are equal by == if and only if they hold the same metrics with the same numbers.
type Values struct {
	numbers [MetricCount]float32
	mask    uint8
}

// Set stores a metric. A number that is not finite counts as absent. Negative zero is stored as zero, so that equal
// numbers have equal bits (decision 41).
func (v *Values) Set(m Metric, x float32) {
	if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
		return
	}
	v.numbers[m] = x + 0 // -0 + 0 is 0.
	v.mask |= 1 << m
}

// ValuesOf returns the values of columns, of which those that are null are absent.
func ValuesOf(columns [MetricCount]*float32) (v Values) {
	for m, x := range columns {
		if x != nil {
			v.Set(Metric(m), *x)
		}
	}
	return v
}

// Get returns a metric and whether it is present.
func (v *Values) Get(m Metric) (float32, bool) {
	return v.numbers[m], v.mask&(1<<m) != 0
}

// Mask returns valid_mask: bit i is set if metric i is present (decision 28).
func (v *Values) Mask() uint8 { return v.mask }

// BucketLength is the interval at which a device measures.
const BucketLength = 5 * time.Minute

// BucketOf returns the start of the 5-minute bucket that contains a time.
func BucketOf(at time.Time) time.Time { return at.UTC().Truncate(BucketLength) }

// Reading is what the API serves of one 5-minute bucket of one device (spec 2, Reading).
type Reading struct {
	BucketAt   time.Time
	Values     Values
	IngestedAt time.Time // when one of the values last changed (decision 38)
}

// LateAfter is the delay after its measurement from which a reading is late.
const LateAfter = time.Hour

// LateReadings are the late readings of a device in a part of a window.
type LateReadings struct {
	From  time.Time     // of the part
	Delay time.Duration // from the measurement to the arrival; the longest one
}

// MissingValue is a metric that the newest reading of a device lacks.
type MissingValue struct {
	DeviceID uuid.UUID
	Metric   Metric
	Before   time.Time // bucket_at of the newest reading
}

// OlderValue is the newest value of a metric that the newest reading of its device lacks.
type OlderValue struct {
	DeviceID uuid.UUID
	Metric   Metric
	BucketAt time.Time
	Value    float32
}

// Measurement is what a device reported for one point in time. Several may fall into one bucket; see Merge.
type Measurement struct {
	MeasuredAt time.Time // UTC, whole microseconds
	Values     Values
}

// Bucket returns the start of the 5-minute bucket that contains the measurement (decision 37).
func (m *Measurement) Bucket() time.Time { return BucketOf(m.MeasuredAt) }

// AppendJSON appends the measurement as a reading of an upload. Metrics that are missing are null, or left out.
func (m *Measurement) AppendJSON(dst []byte, nulls bool) []byte {
	dst = append(AppendTime(append(dst, `{"measured_at":"`...), m.MeasuredAt), '"')
	for _, metric := range Metrics {
		x, ok := m.Values.Get(metric)
		if !ok && !nulls {
			continue
		}
		dst = append(append(append(dst, `,"`...), metric.String()...), `":`...)
		if ok {
			dst = AppendNumber(dst, x)
		} else {
			dst = append(dst, "null"...)
		}
	}
	return append(dst, '}')
}

// Merge merges two measurements of one bucket of one device (late-merge rule, decision 37). The later measurement is
// the reading, as a whole. Two deliveries of the same measurement are merged per metric: a null never erases a value,
// and the greater of two values stays. Merge is commutative, associative and idempotent, so that neither the order nor
// the repetition of uploads matters (decision 38).
func Merge(a, b Measurement) Measurement {
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

const (
	// MaxPage is the most items of a page (spec 8, Page size).
	MaxPage = 1000
	// MaxPageBytes is the most bytes of the body of a page, before compression, unless it has one item only (decision
	// 52).
	MaxPageBytes = 8 << 20
)

// ReadingQuery selects a page of a device's readings, by bucket_at descending (decision 10).
type ReadingQuery struct {
	Window Window
	Before *time.Time // bucket_at of the last row of the previous page; nil on the first page
	Limit  int
}

// Stats aggregates each metric over some hours.
type Stats [MetricCount]Stat

// Plus returns the aggregate of both.
func (s Stats) Plus(o Stats) Stats {
	for m := range s {
		s[m] = s[m].plus(o[m])
	}
	return s
}

// Stat aggregates one metric over some hours. If Count is 0, the other fields are meaningless.
type Stat struct {
	Min, Max float32
	Sum      float64 // 64 bits, so that a mean loses no digit
	Count    int64
}

// Mean returns sum / count, computed in 64 bits and rounded to 32 (decision 17). Negative zero becomes zero, as in a
// reading.
func (s Stat) Mean() float32 { return float32(s.Sum/float64(s.Count)) + 0 }

func (s Stat) plus(o Stat) Stat {
	switch {
	case s.Count == 0:
		return o
	case o.Count == 0:
		return s
	}
	return Stat{Min: min(s.Min, o.Min), Max: max(s.Max, o.Max), Sum: s.Sum + o.Sum, Count: s.Count + o.Count}
}

// Summary is the aggregate of one metric as the API prints it. If Count is 0, the other fields are meaningless.
type Summary struct {
	Min, Max, Mean float32
	Count          int
}

// Summary returns what the API prints.
func (s Stat) Summary() Summary {
	if s.Count == 0 {
		return Summary{}
	}
	return Summary{Min: s.Min, Max: s.Max, Mean: s.Mean(), Count: int(s.Count)}
}

// summaryLength is what last_24h covers, the current UTC hour included (decision 17).
const summaryLength = 24 * time.Hour

// SummaryWindow returns the window of last_24h: the current UTC hour and the 23 hours before it (decision 17).
func SummaryWindow(now time.Time) Window {
	end := now.UTC().Truncate(time.Hour).Add(time.Hour)
	return Window{From: end.Add(-summaryLength), To: end}
}

const (
	// MaxExportRows is the most readings that one export may contain (decision 30).
	MaxExportRows = 250_000
	// MaxExportDevices is the most devices that one export may select: so many can be numbered while it is sorted.
	MaxExportDevices = 1 << 22
	// MaxExportAssignments is the most assignments that one export may name: they are in memory while it is sent.
	MaxExportAssignments = 20_000
	// ExportCountCap is where the service stops to count the readings of an export that is too large (decision 30).
	ExportCountCap = 1_000_000
)

// ExportQuery selects readings of a team for an export, by bucket_at, then device_id, both ascending (decision 27).
type ExportQuery struct {
	Window      Window
	Devices     []uuid.UUID // nil: all devices of the team; empty: none
	ExternalRef *string     // only what was measured during assignments with this external_ref (A18.2)
	Lines       bool        // also count the distinct buckets, which are the lines of the wide shape
	IngestedAt  bool        // also read ingested_at
	CountOnly   bool        // count, but do not read the rows
}

// ExportRow is one reading of an export.
type ExportRow struct {
	DeviceID   uuid.UUID
	BucketAt   time.Time
	Values     Values
	IngestedAt time.Time // zero if the query does not ask for it
	MeasuredAt time.Time // in an archive only
	HardwareID string    // of the unit that measured it, in an archive only; empty if none was installed
}

// ReadingSummary are the readings of a team in a window, as an archive compares them.
type ReadingSummary struct {
	Readings         int64
	Devices          int64
	NewestIngestedAt time.Time
}

// ReadingExport is a snapshot of the readings that a query selects. The caller must close it.
type ReadingExport interface {
	// Rows returns the number of readings.
	Rows() int
	// Lines returns the number of distinct buckets, if the query asks for it.
	Lines() int
	// Each calls do with every reading, ordered by bucket and device, and stops at the first error of do.
	Each(ctx context.Context, do func(*ExportRow) error) error
	Close()
}

// TooManyRowsError means that an export would contain more than MaxExportRows.
type TooManyRowsError struct {
	Rows int // at most ExportCountCap + 1, which means "more than ExportCountCap"
	// FitsUntil is the end of the longest window with the same start that would fit; nil if not even one bucket does.
	FitsUntil *time.Time
}

// Count returns the number of rows for a message (decision 30 c and d).
func (e *TooManyRowsError) Count() string {
	if e.Rows > ExportCountCap {
		return "more than 1,000,000"
	}
	return strconv.Itoa(e.Rows)
}

func (e *TooManyRowsError) Error() string { return "too many rows for one export" }
