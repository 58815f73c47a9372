package chart

import (
	"fmt"
	"strings"
)

const (
	// minMark is the distance, as a fraction of the plot, below which marks share a label.
	minMark = 1.0 / 25
	// rightMark is where the right part of the plot begins, in which the label of the last mark is to its left.
	rightMark = 0.75
	// maxDescribed is how many marks the description of a chart has, so that it stays short.
	maxDescribed = 10
)

// markLabel is the label of one mark, or of some that are close together.
type markLabel struct {
	text     string
	at       float64 // of the first mark
	from, to float64 // the space of the text, which is cut off outside of it
	left     bool    // whether the text is to the left of the mark
}

// drawMarks appends a line for each mark, and above the plot the labels.
func (d *drawing) drawMarks() {
	for i := range d.Marks {
		x := d.part(d.Marks[i].At)
		d.raw(`<line class="chart-mark"`)
		d.percent("x1", x)
		d.percent("x2", x)
		d.attribute("y1", d.top-markHeight)
		d.attribute("y2", d.top+plotHeight)
		d.raw(`/>`)
	}
	labels := d.markLabels()
	for i := range labels {
		l := &labels[i]
		d.raw(`<svg`) // An inner <svg> cuts off what is outside.
		d.percent("x", l.from)
		d.percent("width", l.to-l.from)
		d.attribute("y", d.top-markHeight-plotMargin/2)
		d.attribute("height", markHeight)
		if l.left {
			d.raw(`><text class="chart-mark-label end" x="100%" dx="-4" y="13">`)
		} else {
			d.raw(`><text class="chart-mark-label" x="4" y="13">`)
		}
		d.text(l.text)
		d.raw(`</text></svg>`)
	}
}

// markLabels returns the labels, each with the space up to the next one.
func (d *drawing) markLabels() (labels []markLabel) {
	for first := 0; first < len(d.Marks); {
		at, next := d.part(d.Marks[first].At), first+1
		for next < len(d.Marks) && d.part(d.Marks[next].At)-at < minMark {
			next++
		}
		text := fmt.Sprintf("%d %s", first+1, d.Marks[first].Text)
		if next > first+1 {
			text = fmt.Sprintf("%d–%d", first+1, next)
		}
		if n := len(labels); n > 0 {
			labels[n-1].to = at
		}
		labels = append(labels, markLabel{text: text, at: at, from: at, to: 1})
		first = next
	}
	if n := len(labels); n > 0 && labels[n-1].at > rightMark {
		last := &labels[n-1]
		last.left, last.from, last.to = true, 0, last.at
		if n > 1 {
			last.from = (labels[n-2].at + last.at) / 2
			labels[n-2].to = last.from
		}
	}
	return labels
}

// describeMarks describes the newest marks in sentences.
func (l *Line) describeMarks() string {
	var b strings.Builder
	for i := max(0, len(l.Marks)-maxDescribed); i < len(l.Marks); i++ {
		fmt.Fprintf(&b, " Note %d at %s: %s.", i+1, l.time(l.Marks[i].At, "Mon 2 Jan, 15:04"),
			strings.TrimSuffix(l.Marks[i].Text, "."))
	}
	return b.String()
}
