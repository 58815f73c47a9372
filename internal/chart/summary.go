package chart

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// heading names the metric and the window.
func (l *Line) heading() string {
	const layout = "Mon 2 Jan 2006, 15:04"
	return fmt.Sprintf("%s from %s to %s (%s)", l.Title,
		l.time(l.Window.From, layout), l.time(l.Window.To, layout), l.Zone)
}

// time formats a time in the zone of the chart.
func (l *Line) time(at time.Time, layout string) string {
	if l.Format == nil {
		return at.In(l.Zone).Format(layout)
	}
	return l.Format(at.In(l.Zone), layout)
}

// Summary describes the chart in sentences: the extremes, the mean and the newest value, how often thresholds were
// exceeded, gaps and late readings.
func (l *Line) Summary() string { return l.summary(l.inside(l.Points)) }

func (l *Line) summary(points []Point) string {
	if len(points) == 0 {
		return "No data in this window."
	}
	var b strings.Builder
	l.describeValues(&b, points)
	for _, t := range l.Thresholds {
		exceeded := 0
		for i := range points {
			if t.exceeded(&points[i]) {
				exceeded++
			}
		}
		side := "Below"
		if t.Above {
			side = "Above"
		}
		fmt.Fprintf(&b, " %s %s %s: %d of %d points.", side, t.number(), l.Unit, exceeded, len(points))
	}
	l.describeGaps(&b, points)
	late := 0
	for i := range points {
		if points[i].Late {
			late++
		}
	}
	if late > 0 {
		fmt.Fprintf(&b, " Arrived late: %d of %d points.", late, len(points))
	}
	return b.String()
}

// summaryOfCompared describes the values of each line that is compared.
func (d *drawing) summaryOfCompared() string {
	var b strings.Builder
	for i := range d.compared {
		if i > 0 {
			b.WriteString(" ")
		}
		b.WriteString(d.compared[i].Name + ": ")
		if points := d.compared[i].Points; len(points) > 0 {
			d.describeValues(&b, points)
		} else {
			b.WriteString("no data in this window.")
		}
	}
	return b.String()
}

// exceeded reports whether a point has a value beyond the threshold.
func (t Threshold) exceeded(p *Point) bool {
	if t.Above {
		return p.High > t.Value
	}
	return p.Low < t.Value
}

func (l *Line) describeValues(b *strings.Builder, points []Point) {
	mean, low, high, _ := Extent(points)
	newest := &points[len(points)-1]
	fmt.Fprintf(b, "Lowest %s, highest %s, mean %s %s. Newest: %s %s at %s.", l.number(low), l.number(high),
		l.number(mean), l.Unit, l.number(float64(newest.Value)), l.Unit, l.time(newest.At, "Mon 2 Jan, 15:04"))
}

// describeGaps appends how many gaps there are between points, and the longest one.
func (l *Line) describeGaps(b *strings.Builder, points []Point) {
	gaps, longest := 0, time.Duration(0)
	for i := 1; i < len(points); i++ {
		if missing := points[i].At.Sub(points[i-1].At) - l.Step; missing > 0 {
			gaps++
			longest = max(longest, missing)
		}
	}
	switch gaps {
	case 0:
		b.WriteString(" No gaps.")
	case 1:
		fmt.Fprintf(b, " One gap of %s.", length(longest))
	default:
		fmt.Fprintf(b, " %d gaps, the longest %s.", gaps, length(longest))
	}
}

// length formats a duration with its two largest units: 3 d 4 h, 2 h 5 min or 10 min.
func length(d time.Duration) string {
	minutes := int(math.Round(d.Minutes()))
	days, hours := minutes/(24*60), minutes/60%24
	switch {
	case days > 0:
		return fmt.Sprintf("%d d %d h", days, hours)
	case hours > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes%60)
	}
	return fmt.Sprintf("%d min", minutes)
}

// bandNames names bands that are too short for a label each.
func (l *Line) bandNames(bands []Band) string {
	return fmt.Sprintf("%d from %s", len(bands), l.time(bands[0].Window.From, "2 Jan"))
}
