package chart

import (
	"slices"
	"strconv"
	"time"
)

// The coordinates of the data: whole units, four per column and per CSS pixel.
const (
	dataWidth  = 4 * maxColumns
	dataHeight = 4 * plotHeight
)

// x returns the coordinate of a time.
func (d *drawing) x(at time.Time) int { return scale{0, 1, 0, dataWidth}.at(d.part(at)) }

// begins returns when a column begins. The last one ends where one more would begin.
func (c *columns) begins(i int) time.Time { return c.start.Add(time.Duration(i) * c.width) }

// center returns the coordinate of the middle of a column.
func (d *drawing) center(i int) int { return d.x(d.columns.begins(i).Add(d.columns.width / 2)) }

// height returns the coordinate of a value.
func (d *drawing) height(value float64) int {
	return scale{d.values.least, d.values.greatest, dataHeight, 0}.at(value)
}

// runs calls do for consecutive columns, from included to excluded, between which nothing is missing.
func (c *columns) runs(do func(from, to int)) {
	from := -1
	for i := range c.list {
		at := &c.list[i]
		if at.count > 0 && from < 0 {
			from = i
		}
		if from >= 0 && (at.count == 0 || at.broken) {
			to := i
			if at.count > 0 {
				to++
			}
			do(from, to)
			from = -1
		}
	}
	if from >= 0 {
		do(from, len(c.list))
	}
}

// drawData appends the lines that are compared, or else the line of the means with the band between the extremes, if
// there is one.
func (d *drawing) drawData() {
	d.beginInner("chart-data", d.top, plotHeight, dataHeight)
	if len(d.compared) > 0 {
		d.drawCompared()
	} else {
		line, band := d.paths(&d.columns)
		if len(band.out) > 0 {
			d.raw(`<path class="chart-range" d="` + string(band.out) + `"/>`)
		}
		d.raw(`<path class="chart-line" d="` + string(line.out) + `"/>`)
	}
	d.raw(`</svg>`)
}

// drawCompared appends the lines that are compared. A style tells them apart by their class.
func (d *drawing) drawCompared() {
	for i := range d.compared {
		c := d.merge(d.compared[i].Points)
		line, _ := d.paths(&c)
		d.raw(`<path class="chart-line line-` + strconv.Itoa(i+1) + `" data-name="`)
		d.text(d.compared[i].Name)
		d.raw(`"`)
		d.valuesAttribute(&c)
		d.raw(` d="` + string(line.out) + `"/>`)
	}
}

// paths returns the line of the means of columns, and the band between their extremes.
func (d *drawing) paths(c *columns) (line, band path) {
	c.runs(func(from, to int) {
		columns := c.list[from:to]
		line.move(d.center(from), d.height(columns[0].mean))
		hasBand := columns[0].isBand()
		for i := 1; i < len(columns); i++ {
			line.line(d.center(from+i), d.height(columns[i].mean))
			hasBand = hasBand || columns[i].isBand()
		}
		line.end()
		if hasBand {
			d.addBand(&band, columns, from)
		}
	})
	return line, band
}

// addBand adds the polygon between the extremes of a run. That of a single column has no width: the outline shows it.
func (d *drawing) addBand(band *path, columns []column, from int) {
	band.move(d.center(from), d.height(columns[0].high))
	for i := 1; i < len(columns); i++ {
		band.line(d.center(from+i), d.height(columns[i].high))
	}
	for i := range slices.Backward(columns) {
		band.line(d.center(from+i), d.height(columns[i].low))
	}
	band.close()
}

// beginInner opens an <svg> whose content stretches with the width of the drawing.
func (d *drawing) beginInner(class string, y, height, units int) {
	d.raw(`<svg class="` + class + `" width="100%" preserveAspectRatio="none"`)
	d.attribute("y", y)
	d.attribute("height", height)
	d.raw(` viewBox="0 0 ` + strconv.Itoa(dataWidth) + ` ` + strconv.Itoa(units) + `">`)
}

// lateMarks returns a rectangle for each run of columns with readings that arrived late.
func (d *drawing) lateMarks() (marks path) {
	from := -1
	for i := 0; i <= len(d.columns.list); i++ {
		late := i < len(d.columns.list) && d.columns.list[i].late
		if late && from < 0 {
			from = i
		}
		if !late && from >= 0 {
			left, right := d.x(d.columns.begins(from)), d.x(d.columns.begins(i))
			marks.move(left, 0)
			marks.line(right, 0)
			marks.line(right, lateHeight)
			marks.line(left, lateHeight)
			marks.close()
			from = -1
		}
	}
	return marks
}

// drawLate appends the marks of late readings below the plot, and their label.
func (d *drawing) drawLate(marks *path) {
	if len(marks.out) == 0 {
		return
	}
	d.beginInner("chart-late", d.top+plotHeight+lateMargin, lateHeight, lateHeight)
	d.raw(`<path d="`)
	d.raw(string(marks.out))
	d.raw(`"/></svg><text class="chart-value" x="-8"`)
	d.attribute("y", d.bottom)
	d.raw(`>late</text>`)
}

// dataAttributes appends the attributes for scripts.
func (d *drawing) dataAttributes() {
	if len(d.columns.list) == 0 {
		return
	}
	d.raw(` data-from="` + strconv.FormatInt(d.columns.start.UnixMilli(), 10))
	d.raw(`" data-step="` + strconv.FormatInt(d.columns.width.Milliseconds(), 10) + `"`)
	if len(d.compared) == 0 {
		d.valuesAttribute(&d.columns)
	}
}

// valuesAttribute appends the attribute for scripts that has the values of columns.
func (d *drawing) valuesAttribute(c *columns) {
	d.raw(` data-values="`)
	for i := range c.list {
		at := &c.list[i]
		if i > 0 {
			d.raw(",")
		}
		if at.count == 0 {
			continue
		}
		d.raw(d.number(at.mean))
		if at.isBand() {
			d.raw(` ` + d.number(at.low) + ` ` + d.number(at.high))
		}
		if at.late {
			d.raw("*")
		}
	}
	d.raw(`"`)
}
