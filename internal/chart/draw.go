package chart

import (
	"time"
)

// The heights of the parts of a drawing, from top to bottom, in CSS pixels.
const (
	bandLabelHeight = 20 // if there are bands
	markHeight      = 18 // if there are marks
	plotMargin      = 8  // so that a label of the value axis has room
	plotHeight      = 160
	lateMargin      = 8 // if readings arrived late
	lateHeight      = 8
	tickLabelHeight = 40
)

// drawing is a chart on the way to its markup.
type drawing struct {
	*Line
	markup

	columns  columns
	compared []Series // with the points that are inside
	values   valueAxis
	top      int // of the plot
	bottom   int // of the marks below the plot
}

// part returns where a time is in the window, from 0 to 1.
func (d *drawing) part(at time.Time) float64 {
	return min(max(float64(at.Sub(d.Window.From))/float64(d.Window.To.Sub(d.Window.From)), 0), 1)
}

// y returns the height of a value in the plot, in CSS pixels from the top of the drawing.
func (d *drawing) y(value float64) int {
	return d.top + scale{d.values.least, d.values.greatest, plotHeight, 0}.at(value)
}

func (d *drawing) draw(points []Point) string {
	d.top = plotMargin
	if len(d.Bands) > 0 {
		d.top += bandLabelHeight
	}
	if len(d.Marks) > 0 {
		d.top += markHeight
	}
	d.bottom = d.top + plotHeight
	late := d.lateMarks()
	if len(late.out) > 0 {
		d.bottom += lateMargin + lateHeight
	}
	d.begin(points)
	if !d.Window.Empty() {
		d.drawNights()
		d.drawBands()
		d.drawValueAxis()
		d.drawTimeAxis()
		d.drawThresholds()
		d.drawMarks()
		d.drawData()
		d.drawLate(&late)
	}
	d.raw(`</svg>`)
	return string(d.out)
}

// begin appends the opening tag, the title and the description.
func (d *drawing) begin(points []Point) {
	d.raw(`<svg class="chart" role="img" width="100%"`)
	d.attribute("height", d.bottom+tickLabelHeight)
	d.raw(` aria-labelledby="` + d.ID + `-title ` + d.ID + `-desc"`)
	d.dataAttributes()
	d.raw(`><title id="` + d.ID + `-title">`)
	d.text(d.heading())
	d.raw(`</title><desc id="` + d.ID + `-desc">`)
	if len(d.compared) > 0 {
		d.text(d.summaryOfCompared())
	} else {
		d.text(d.summary(points))
	}
	d.text(d.describeMarks())
	d.raw(`</desc>`)
}

// drawNights appends a rectangle for each night.
func (d *drawing) drawNights() {
	for _, night := range d.Nights {
		if w := night.Intersect(d.Window); !w.Empty() {
			d.raw(`<rect class="chart-night"`)
			d.percent("x", d.part(w.From))
			d.percent("width", d.part(w.To)-d.part(w.From))
			d.attribute("y", d.top)
			d.attribute("height", plotHeight)
			d.raw(`/>`)
		}
	}
}

// minBand is the minimum width of a band, as a fraction of the plot; shorter ones that follow one another are joined,
// so that their number is bounded.
const minBand = 1.0 / 200

// drawBands appends a rectangle above the plot for each band, with its label. A label that has no room is cut off.
func (d *drawing) drawBands() {
	for bands := d.shownBands(); len(bands) > 0; {
		from, count := d.part(bands[0].Window.From), 1
		for count < len(bands) && d.part(bands[count].Window.To)-from < minBand {
			count++
		}
		d.drawBand(bands[:count], from, d.part(bands[count-1].Window.To))
		bands = bands[count:]
	}
}

// shownBands returns the bands of which a part is in the window.
func (d *drawing) shownBands() (bands []Band) {
	for _, b := range d.Bands {
		if !b.Window.Intersect(d.Window).Empty() {
			bands = append(bands, b)
		}
	}
	return bands
}

func (d *drawing) drawBand(bands []Band, from, to float64) {
	label := bands[0].Label
	if len(bands) > 1 {
		label = d.bandNames(bands)
	}
	d.raw(`<rect class="chart-band"`)
	d.percent("x", from)
	d.percent("width", to-from)
	d.attribute("height", bandLabelHeight)
	d.raw(`/><svg`) // An inner <svg> cuts off what is outside.
	d.percent("x", from)
	d.percent("width", to-from)
	d.attribute("height", bandLabelHeight)
	d.raw(">")
	d.raw(`<text class="chart-band-label" x="4" y="14">`)
	d.text(label)
	d.raw(`</text></svg>`)
}

// drawValueAxis appends a line with a label for each tick.
func (d *drawing) drawValueAxis() {
	for _, tick := range d.values.ticks {
		y := d.y(tick)
		d.raw(`<line class="chart-grid" x2="100%"`)
		d.attribute("y1", y)
		d.attribute("y2", y)
		d.raw(`/><text class="chart-value" x="-8"`)
		d.attribute("y", y+4)
		d.raw(`>` + d.values.label(tick) + `</text>`)
	}
}

// drawTimeAxis appends a line with a label for each tick. A label at the right edge is inside the plot; at the left
// edge, the margin has room for it.
func (d *drawing) drawTimeAxis() {
	for _, t := range d.timeTicks() {
		x := d.part(t.at)
		d.raw(`<line class="chart-grid"`)
		d.percent("x1", x)
		d.percent("x2", x)
		d.attribute("y1", d.top)
		d.attribute("y2", d.bottom+4)
		d.raw(`/>`)
		align := ""
		if x > 0.97 {
			align = " end"
		}
		class := "chart-tick" + align
		if t.wide {
			class += " wide"
		}
		d.textElement(class, x, d.bottom+17, t.label)
		if t.below != "" {
			if !d.isClock() && t.wide {
				align += " wide"
			}
			d.textElement("chart-tick"+align, x, d.bottom+33, t.below)
		}
	}
}

// isClock reports whether the time axis has local hours, not dates.
func (d *drawing) isClock() bool { return d.Window.To.Sub(d.Window.From) <= 3*day+2*time.Hour }

// drawThresholds appends a line for each threshold, with its value at the left end, away from the newest data.
func (d *drawing) drawThresholds() {
	for _, t := range d.Thresholds {
		y := d.y(float64(t.Value))
		d.raw(`<line class="chart-threshold" x2="100%"`)
		d.attribute("y1", y)
		d.attribute("y2", y)
		d.raw(`/>`)
		inside := y - 4 // Towards the other values, away from the labels around the plot.
		if t.Above {
			inside = y + 13
		}
		d.textElement("chart-threshold-label", 0, inside, "limit "+t.number()+" "+d.Unit)
	}
}
