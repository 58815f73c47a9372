package chart

import (
	"html/template"
	"math"
)

// Size is the size of the viewBox of a drawing. A drawing scales with the width that the stylesheet gives it.
type Size struct{ Width, Height int }

// Sparkline returns a line of CO2 in ppm without axes, <svg class="sparkline">. Its values are at equal distances; NaN
// is a gap. The vertical scale reaches from about fresh air at least to 1,200, so that noise does not look like a
// change. The limit, unless it is nil, is a line of the class limit, and the parts above it are of the class over. The
// label is the text alternative. With a size of 96 by 24, 24 values and no limit, the markup has at most 250 bytes and
// the label, and 24 bytes more for each gap.
func Sparkline(values []float32, limit *float32, size Size, label string) template.HTML {
	low, high := float32(400), float32(1200)
	if limit != nil {
		low, high = min(low, *limit), max(high, *limit)
	}
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
	m.raw(`" role="img" aria-label="`)
	m.text(label)
	m.raw(`"><path d="`)
	s := sparkline{values, size, scale{float64(low), float64(high), float64(size.Height - 1), 1}}
	p := s.path()
	m.raw(string(p.out))
	m.raw(`"/>`)
	if limit != nil {
		m.raw(`<path class="limit" d="M0 `)
		m.int(s.y.at(float64(*limit)))
		m.raw("h")
		m.int(size.Width)
		m.raw(`"/>`)
		if p := s.above(float64(*limit)); len(p.out) > 0 {
			m.raw(`<path class="over" d="`)
			m.raw(string(p.out))
			m.raw(`"/>`)
		}
	}
	m.raw(`</svg>`)
	return template.HTML(string(m.out)) //nolint:gosec // It consists of numbers and the escaped label.
}

// sparkline is a small line on the way to its markup.
type sparkline struct {
	values []float32
	size   Size
	y      scale
}

// x returns the coordinate of a value by its index. The line keeps 1 unit from the edges, half of its width at most.
func (s *sparkline) x(i float64) int {
	return scale{0, float64(max(len(s.values)-1, 1)), 1, float64(s.size.Width - 1)}.at(i)
}

// path returns the lines between the gaps.
func (s *sparkline) path() (p path) {
	inLine := false
	for i, v := range s.values {
		switch {
		case isFinite(v) && inLine:
			p.line(s.x(float64(i)), s.y.at(float64(v)))
		case isFinite(v):
			p.move(s.x(float64(i)), s.y.at(float64(v)))
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

// above returns the parts of the line above a limit.
func (s *sparkline) above(limit float64) (p path) {
	for i := 1; i < len(s.values); i++ {
		if !isFinite(s.values[i-1]) || !isFinite(s.values[i]) {
			continue
		}
		from, to := float64(s.values[i-1]), float64(s.values[i])
		if from <= limit && to <= limit {
			continue
		}
		// at returns the position at which the line has a value, or the nearer end.
		at := func(end, value float64) float64 {
			if value > limit {
				return end
			}
			return float64(i-1) + (limit-from)/(to-from)
		}
		first, last := at(float64(i-1), from), at(float64(i), to)
		p.move(s.x(first), s.y.at(max(from, limit)))
		p.line(s.x(last), s.y.at(max(to, limit)))
		p.end()
	}
	return p
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
