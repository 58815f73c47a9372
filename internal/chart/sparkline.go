package chart

import (
	"html/template"
	"math"
)

// Size is the size of the viewBox of a drawing. A drawing scales with the width that the stylesheet gives it.
type Size struct{ Width, Height int }

// maxSparklinePoints is the maximum number of points of a sparkline: one per hour of a day. More values are merged into
// their means.
const maxSparklinePoints = 24

// Sparkline returns a line without axes, <svg class="sparkline">. Its values are at equal distances; NaN is a gap. The
// vertical scale includes the values from low to high, so that noise does not look like a change. label is the text
// alternative; without one the drawing is hidden from assistive technology, because the text beside it says the same.
// With a size of 96 by 24 the markup has at most 250 bytes and the label, and 24 bytes more for each gap.
func Sparkline(values []float32, low, high float32, size Size, label string) template.HTML {
	values = mergeToMeans(values, maxSparklinePoints)
	for _, v := range values {
		if isFinite(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	var m markup
	m.raw(`<svg class="sparkline" viewBox="0 0 `)
	m.int(size.Width)
	m.raw(" ")
	m.int(size.Height)
	if label == "" {
		m.raw(`" aria-hidden="true"><path d="`)
	} else {
		m.raw(`" role="img" aria-label="`)
		m.text(label)
		m.raw(`"><path d="`)
	}
	p := sparklinePath(values, low, high, size)
	m.raw(string(p.out))
	m.raw(`"/></svg>`)
	return template.HTML(string(m.out)) //nolint:gosec // It consists of numbers and the escaped label.
}

// sparklinePath returns the lines between the gaps.
func sparklinePath(values []float32, low, high float32, size Size) (p path) {
	// The line keeps 1 unit from the edges, half of its width at most.
	x := scale{0, float64(max(len(values)-1, 1)), 1, float64(size.Width - 1)}
	y := scale{float64(low), float64(high), float64(size.Height - 1), 1}
	inLine := false
	for i, v := range values {
		switch {
		case isFinite(v) && inLine:
			p.line(x.at(float64(i)), y.at(float64(v)))
		case isFinite(v):
			p.move(x.at(float64(i)), y.at(float64(v)))
		case inLine:
			p.end()
		}
		inLine = isFinite(v)
	}
	if inLine {
		p.end()
	}
	return p
}

// mergeToMeans returns at most limit values at equal distances: each is the mean of equally many neighbors that are
// finite, or NaN if none is.
func mergeToMeans(values []float32, limit int) []float32 {
	if len(values) <= limit {
		return values
	}
	each := (len(values) + limit - 1) / limit
	merged := make([]float32, 0, limit)
	for start := 0; start < len(values); start += each {
		sum, count := 0.0, 0
		for _, v := range values[start:min(start+each, len(values))] {
			if isFinite(v) {
				sum += float64(v)
				count++
			}
		}
		merged = append(merged, float32(sum/float64(count))) // 0/0 is NaN.
	}
	return merged
}

func isFinite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// scale maps the values from least to greatest to the coordinates from first to last.
type scale struct{ least, greatest, first, last float64 }

// at returns the coordinate of a value in whole units, between first and last. All values of a scale without extent are
// in its middle.
func (s scale) at(v float64) int {
	part := 0.5
	if s.least < s.greatest {
		part = min(max((v-s.least)/(s.greatest-s.least), 0), 1)
	}
	return int(math.Round(s.first + part*(s.last-s.first)))
}
