package chart

import (
	"html/template"
	"slices"
	"strconv"
	"time"

	"roomsensor/internal/roomsensor"
)

// Line is a chart of one metric over time.
type Line struct {
	ID     string // begins the ids in the drawing; unique on the page
	Title  string // what is measured, such as Temperature
	Unit   string
	Digits int // after the decimal point
	Window roomsensor.Window
	Zone   *time.Location
	Format func(at time.Time, layout string) string // of times; nil is that of the layout
	// Step is the distance of two points between which nothing is missing. Points are starts of buckets of this length.
	Step   time.Duration
	Points []Point // ascending; those outside the window are left out
	// Low and High are values that the scale includes, so that noise does not look like a change.
	Low, High  float64
	Thresholds []Threshold         // finite
	Bands      []Band              // ascending, without overlaps
	Nights     []roomsensor.Window // shaded
	Marks      []Mark              // ascending
	// Compared are lines with names instead of Points. The extremes of their points are not drawn.
	Compared []Series
}

// Series is a line that is compared with others.
type Series struct {
	Name   string
	Points []Point // ascending; those outside the window are left out
}

// Point is what was measured in one bucket.
type Point struct {
	At        time.Time
	Value     float32 // the mean; NaN if there is none
	Low, High float32 // the extremes; equal to Value for a single reading
	Count     int     // of readings that Value is the mean of, at least 1
	Late      bool    // whether one of them arrived late
}

// Threshold is a limit, shown as a horizontal line.
type Threshold struct {
	Value float32
	Above bool // whether values above it exceed it, otherwise those below
}

// number formats the threshold with all of its digits.
func (t Threshold) number() string { return strconv.FormatFloat(float64(t.Value), 'f', -1, 32) }

// Band is a labeled interval, such as an assignment.
type Band struct {
	Window roomsensor.Window
	Label  string
}

// Mark is a text at a time, such as a note. The marks of a chart are numbered from 1.
type Mark struct {
	At   time.Time
	Text string
}

// hasValue reports whether a point can be drawn.
func (p *Point) hasValue() bool { return isFinite(p.Value) && isFinite(p.Low) && isFinite(p.High) }

// inside returns the points of the window that have a value.
func (l *Line) inside(all []Point) []Point {
	points := make([]Point, 0, len(all))
	for i := range all {
		if p := &all[i]; l.Window.Contains(p.At) && p.hasValue() {
			points = append(points, *p)
		}
	}
	return points
}

// number formats a value with the digits of the chart.
func (l *Line) number(v float64) string { return strconv.FormatFloat(v, 'f', l.Digits, 64) }

// SVG returns the drawing. Its size does not depend on the number of points. The attributes that begin with data- are
// for scripts: data-from is the start of the first column in milliseconds since 1970, data-step is the width of a
// column in milliseconds, and data-values has one item per column, separated by commas: nothing, the value, or the
// mean, least and greatest value separated by spaces, and then * if a reading arrived late. Each line that is compared
// has data-name and data-values of its own.
func (l *Line) SVG() template.HTML {
	points := l.inside(l.Points)
	d := drawing{Line: l, columns: l.merge(points)}
	all := slices.Clone(points)
	for _, s := range l.Compared {
		s.Points = l.inside(s.Points)
		d.compared, all = append(d.compared, s), append(all, s.Points...)
	}
	d.values = l.valueAxis(all)
	return template.HTML(d.draw(points)) //nolint:gosec // It consists of numbers and escaped text.
}
