package chart

import (
	"encoding/xml"
	"math"
	"strconv"
)

// markup collects SVG.
type markup struct{ out []byte }

// raw appends markup.
func (m *markup) raw(text string) { m.out = append(m.out, text...) }

// Write appends markup and returns no error.
func (m *markup) Write(text []byte) (int, error) {
	m.out = append(m.out, text...)
	return len(text), nil
}

// text appends text, escaped for the content of an element and for an attribute. Characters that XML does not allow
// become U+FFFD.
func (m *markup) text(text string) { _ = xml.EscapeText(m, []byte(text)) } // Write returns no error.

// int appends a number.
func (m *markup) int(n int) { m.out = strconv.AppendInt(m.out, int64(n), 10) }

// attribute appends an attribute with a number.
func (m *markup) attribute(name string, n int) {
	m.raw(" " + name + `="`)
	m.int(n)
	m.raw(`"`)
}

// percent appends an attribute with a part of the width, from 0 to 1.
func (m *markup) percent(name string, part float64) {
	m.raw(" " + name + `="`)
	m.out = strconv.AppendFloat(m.out, math.Round(part*1e5)/1e3, 'f', -1, 64)
	m.raw(`%"`)
}

// textElement appends a <text> at a part of the width.
func (m *markup) textElement(class string, part float64, y int, text string) {
	m.raw(`<text class="` + class + `"`)
	m.percent("x", part)
	m.attribute("y", y)
	m.raw(">")
	m.text(text)
	m.raw(`</text>`)
}

// path collects relative coordinates in whole units, which are short.
type path struct {
	markup
	x, y    int
	drawing bool // whether the last command was a line
}

// move begins a line.
func (p *path) move(x, y int) {
	p.raw("M")
	p.pair(x, y)
	p.x, p.y, p.drawing = x, y, false
}

// line draws to a point.
func (p *path) line(x, y int) {
	dx, dy := x-p.x, y-p.y
	if !p.drawing {
		p.raw("l")
	} else if dx >= 0 { // A minus sign separates numbers, too.
		p.raw(" ")
	}
	p.pair(dx, dy)
	p.x, p.y, p.drawing = x, y, true
}

// pair appends two coordinates.
func (p *path) pair(x, y int) {
	p.int(x)
	if y >= 0 {
		p.raw(" ")
	}
	p.int(y)
}

// end ends a line. One that has only one point gets a length of 0, which round line caps show as a dot.
func (p *path) end() {
	if !p.drawing {
		p.raw("h0")
	}
}

// close closes a polygon.
func (p *path) close() { p.raw("Z") }
