package mapping

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"roomsensor/internal/roomsensor"
)

// Mapping says where a message has its measurements (A11). It does not change, so that several goroutines may use it.
type Mapping struct {
	Description string
	Sampling    string // "whole" or "mean", of devices that are registered for the source (A13.1); empty if not given
	Lines       bool   // the message is line protocol, otherwise JSON

	each        []path
	unit        []path
	at          []timeAlternative
	metrics     [roomsensor.MetricCount][]alternative
	nulls       []string
	rssi        []path
	bars        []path
	firmware    []path
	ignore      []condition
	emptyIgnore bool // an element without any metric value is ignored, otherwise it is a problem

	noUnit   string // detail of an element without a unit
	noMetric string // detail of an element without any metric value
}

// timeAlternative is one place of the time of a measurement (time rule, A11.5).
type timeAlternative struct {
	path   path
	format TimeFormat
}

// alternative is one place of a metric: value = number x scale + offset (value rule, A11.6).
type alternative struct {
	path   path
	scale  float64
	offset float64
	when   *condition // nil if it always holds
}

// condition holds if the first value at its paths equals a value or, if it is absent, if none of them has a value other
// than null (ignore rule, A11.8).
type condition struct {
	paths  []path
	absent bool
	equals scalar
}

// scalar is a text, number, boolean or null of a mapping. Its kind is that of the JSON value.
type scalar struct {
	kind   jsontext.Kind
	text   string // without quotes; the number as it was written
	number float64
}

// defaultNulls are the texts that are not a value (value rule, A11.6).
var defaultNulls = []string{"", "null", "NaN", "nan", "unavailable", "unknown"}

// describe words the details of problems once, because a message may have many.
func (m *Mapping) describe() {
	m.noUnit = "The unit is missing: no value at " + quoted(m.unit) + "."
	var places []string
	for _, metric := range roomsensor.Metrics {
		var paths []path
		for i := range m.metrics[metric] {
			paths = append(paths, m.metrics[metric][i].path)
		}
		if len(paths) > 0 {
			places = append(places, metric.String()+" at "+quoted(paths))
		}
	}
	m.noMetric = "No metric has a value: " + strings.Join(places, "; ") + "."
}

// quoted lists the first paths for a detail, each cut to 100 characters.
func quoted(paths []path) string {
	const most = 3
	names := make([]string, 0, most)
	for i := range paths[:min(len(paths), most)] {
		names = append(names, fmt.Sprintf("%.100q", paths[i].text))
	}
	text := strings.Join(names, ", ")
	if more := len(paths) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
