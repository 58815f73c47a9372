package chart

import (
	"time"
)

// maxColumns is the maximum number of columns of a chart. Its line has one point per column, whatever the window.
const maxColumns = 800

// columns divide the window into equal parts, each of one or more steps.
type columns struct {
	start time.Time // of the first column; not after the window begins
	width time.Duration
	list  []column
}

// column is what was measured in one column.
type column struct {
	mean, low, high float64
	count           int  // of readings; 0 is a gap
	late            bool // whether one of them arrived late
	broken          bool // whether a point is missing between this one and the next that has readings
}

// merge merges points, which must be in the window, into columns. A column has the mean of its readings, and their
// extremes, so that a short peak stays visible. A gap that is shorter than a column is one column wide.
func (l *Line) merge(points []Point) columns {
	if l.Window.Empty() || l.Step <= 0 {
		return columns{width: time.Hour}
	}
	c := columns{start: l.Window.From.Truncate(l.Step)}
	length := l.Window.To.Sub(c.start)
	c.width = time.Duration(int64(length-1)/(int64(l.Step)*maxColumns)+1) * l.Step
	c.list = make([]column, (length-1)/c.width+1)
	var last *column
	for i := range points {
		p := &points[i]
		if last != nil && p.At.Sub(points[i-1].At) > l.Step {
			last.broken = true
		}
		last = &c.list[min(int(p.At.Sub(c.start)/c.width), len(c.list)-1)]
		last.add(p)
	}
	return c
}

func (c *column) add(p *Point) {
	low, high, count := float64(p.Low), float64(p.High), max(p.Count, 1)
	if c.count > 0 {
		low, high = min(low, c.low), max(high, c.high)
	}
	c.low, c.high = low, high
	c.count += count
	c.mean += (float64(p.Value) - c.mean) * float64(count) / float64(c.count)
	c.late = c.late || p.Late
}

// Extent returns the mean and the extremes of the readings of points that have a value. ok is false without points.
func Extent(points []Point) (mean, low, high float64, ok bool) {
	var all column
	for i := range points {
		all.add(&points[i])
	}
	return all.mean, all.low, all.high, all.count > 0
}

// isBand reports whether the readings of the column differ.
func (c *column) isBand() bool { return c.low < c.high }
