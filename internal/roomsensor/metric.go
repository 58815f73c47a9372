package roomsensor

import (
	"math"
)

// Metric is one of the five quantities that a device measures. Its value is
// the metric's place among the CSV columns and its bit in valid_mask
// (spec 2, CSV row; decision 28).
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

// metricRules holds each metric's name in the API and its plausible range,
// both ends included (decision 41).
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

// String is the metric's name in the API, in uploads and in the tables.
func (m Metric) String() string { return metricRules[m].name }

// Range is the plausible range of the metric, both ends included (decision 41).
func (m Metric) Range() (least, greatest float64) {
	return metricRules[m].min, metricRules[m].max
}

// MetricNamed finds a metric by its name.
func MetricNamed(name string) (Metric, bool) {
	for _, m := range Metrics {
		if metricRules[m].name == name {
			return m, true
		}
	}
	return 0, false
}

// Values holds the metrics of one measurement, each independently absent
// (spec 1, convention 2). The zero Values has none. Two Values are equal by ==
// exactly when they hold the same metrics with the same numbers.
type Values struct {
	numbers [MetricCount]float32
	mask    uint8
}

// Set stores a metric. A number that is not finite counts as absent, and
// negative zero is stored as zero (decision 41), so that equal numbers have
// equal bits.
func (v *Values) Set(m Metric, x float32) {
	if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
		return
	}
	v.numbers[m] = x + 0 // -0 + 0 is 0.
	v.mask |= 1 << m
}

// Get returns a metric and whether it is present.
func (v *Values) Get(m Metric) (float32, bool) {
	return v.numbers[m], v.mask&(1<<m) != 0
}

// Mask is valid_mask: bit i is set when metric i is present (decision 28).
func (v *Values) Mask() uint8 { return v.mask }
