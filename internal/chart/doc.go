// Package chart draws charts as accessible SVG: a line with a time axis, and a small line for tiles. A stylesheet
// themes it through classes, so that one drawing serves light, dark and print. Nothing in it needs a script or a style
// attribute, which the Content-Security-Policy of the dashboard forbids.
//
// No library of Go fits. github.com/go-analyze/charts v0.6 writes its colors and fonts into style attributes and draws
// no title or description; its time axis has labels at equal distances instead of local hours and days.
// gonum.org/v1/plot v0.17 writes style attributes too, and refuses missing values. github.com/wcharczuk/go-chart v2,
// from which the first one was forked, has had no release since 2024.
//
// A Line is as wide as its element, and its text keeps its size: horizontal positions are percentages, and the data is
// in an inner <svg> that stretches. The labels of the value axis are to the left of the element, which needs a margin
// there.
//
//	line.go        Line: what a chart shows
//	columns.go     points merged into at most 800 columns
//	draw.go        the parts of a drawing
//	data.go        the line, its band and the marks of late readings
//	marks.go       notes and other texts at a time
//	time_axis.go   ticks at local hours, days, weeks and months
//	value_axis.go  ticks at round numbers
//	summary.go     the text alternative
//	markup.go      elements and escaped text
//	sparkline.go   Sparkline
package chart
