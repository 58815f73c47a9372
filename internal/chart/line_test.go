package chart_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/chart"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/timezone"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	location, ok := timezone.Load(name)
	require.True(t, ok)
	return location
}

// line returns a chart of a window with a reading of CO2 every 5 minutes that follows the time of day.
func line(t testing.TB, from time.Time, length time.Duration) *chart.Line {
	t.Helper()
	l := &chart.Line{
		ID: "co2", Title: "CO₂", Unit: "ppm", Window: roomsensor.Window{From: from, To: from.Add(length)},
		Zone: zone(t, "Europe/Berlin"), Step: roomsensor.BucketLength, Low: 400, High: 1000,
		Thresholds: []chart.Threshold{{Value: 1200, Above: true}},
	}
	for at := from; at.Before(l.Window.To); at = at.Add(l.Step) {
		value := float32(math.Round(700 + 250*math.Sin(float64(at.Unix())/86400*2*math.Pi)))
		l.Points = append(l.Points, chart.Point{At: at, Value: value, Low: value, High: value, Count: 1})
	}
	return l
}

// remove removes the points in a part of the window.
func remove(l *chart.Line, from, to time.Duration) {
	var rest []chart.Point
	for _, p := range l.Points {
		if at := p.At.Sub(l.Window.From); at < from || at >= to {
			rest = append(rest, p)
		}
	}
	l.Points = rest
}

// hourly replaces the points by those of hours.
func hourly(l *chart.Line) {
	var hours []chart.Point
	for _, p := range l.Points {
		hour := p.At.Truncate(time.Hour)
		if n := len(hours); n == 0 || !hours[n-1].At.Equal(hour) {
			hours = append(hours, chart.Point{At: hour, Value: p.Value, Low: p.Value - 40, High: p.Value + 90, Count: 12})
		}
	}
	l.Points, l.Step = hours, time.Hour
}

func TestLineSVG(t *testing.T) {
	t.Parallel()
	// The clocks of Berlin were set back in the night to October 25, 2026.
	today := time.Date(2026, time.October, 24, 12, 0, 0, 0, time.UTC)
	golden := map[string]func() *chart.Line{
		"day": func() *chart.Line {
			l := line(t, today, 24*time.Hour)
			remove(l, 3*time.Hour, 5*time.Hour)
			remove(l, 5*time.Hour+5*time.Minute, 5*time.Hour+10*time.Minute) // Between them is a single reading.
			for i := 100; i < 150; i++ {
				l.Points[i].Late = true
			}
			l.Bands = []chart.Band{
				{roomsensor.Window{From: today.Add(-time.Hour), To: today.Add(6 * time.Hour)}, `Anna <"&'> Müller`},
				{roomsensor.Window{From: today.Add(8 * time.Hour), To: roomsensor.Forever}, "Room 12"},
			}
			l.Nights = []roomsensor.Window{
				{From: today.Add(-2 * time.Hour), To: today.Add(7 * time.Hour)},
				{From: today.Add(22 * time.Hour), To: today.Add(31 * time.Hour)},
				{From: today.Add(46 * time.Hour), To: today.Add(55 * time.Hour)},
			}
			return l
		},
		"marks": func() *chart.Line {
			l := line(t, today, 24*time.Hour)
			l.Points = l.Points[:1]
			for _, after := range []time.Duration{2 * time.Hour, 8 * time.Hour, 8*time.Hour + 10*time.Minute, 24 * time.Hour} {
				l.Marks = append(l.Marks, chart.Mark{At: today.Add(after), Text: `Window <"repaired"> & open.`})
			}
			return l
		},
		"90-days": func() *chart.Line {
			l := line(t, today.Add(-90*24*time.Hour), 90*24*time.Hour)
			hourly(l)
			remove(l, 30*24*time.Hour, 31*24*time.Hour)
			return l
		},
		"compared": func() *chart.Line {
			l := line(t, today, 24*time.Hour)
			later := line(t, today.Add(3*time.Hour), 24*time.Hour)
			l.Thresholds, l.Compared = nil, []chart.Series{{"Room <1>", l.Points}, {"Room 2", later.Points}, {"Room 3", nil}}
			l.Points = nil
			return l
		},
		"empty": func() *chart.Line {
			l := line(t, today, 7*24*time.Hour)
			l.Points = nil
			return l
		},
	}
	for name, build := range golden {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireGolden(t, name+".svg", string(build().SVG()))
		})
	}
}

func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	got = strings.ReplaceAll(got, "><", ">\n<") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestLineGaps(t *testing.T) {
	t.Parallel()
	const week = 7 * 24 * time.Hour
	from := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)
	lines := func(l *chart.Line) int { return strings.Count(pathOf(t, l, "chart-line"), "M") }
	t.Run("without gaps there is one line", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, 1, lines(line(t, from, 24*time.Hour)))
		require.Equal(t, 1, lines(line(t, from, week)))
	})
	t.Run("a single missing reading is a gap", func(t *testing.T) {
		t.Parallel()
		l := line(t, from, 24*time.Hour)
		remove(l, time.Hour, time.Hour+5*time.Minute)
		require.Equal(t, 2, lines(l))
	})
	t.Run("a gap inside a column stays visible", func(t *testing.T) {
		t.Parallel()
		l := line(t, from, week) // Columns of 15 minutes.
		remove(l, time.Hour+5*time.Minute, time.Hour+10*time.Minute)
		require.Equal(t, 2, lines(l))
	})
	t.Run("a value that is not finite is a gap", func(t *testing.T) {
		t.Parallel()
		l := line(t, from, 24*time.Hour)
		l.Points[10].Value = float32(math.NaN())
		require.Equal(t, 2, lines(l))
	})
	t.Run("a single reading is a dot", func(t *testing.T) {
		t.Parallel()
		l := line(t, from, 24*time.Hour)
		l.Points = l.Points[144:145]
		require.Equal(t, "M1606 400h0", pathOf(t, l, "chart-line"))
	})
}

func TestLineBounds(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	for _, length := range []time.Duration{7 * 24 * time.Hour, 90 * 24 * time.Hour, 400 * 24 * time.Hour} {
		l := line(t, from, length)
		for i := range l.Points {
			l.Points[i].Value += float32(i % 97) // No two points are on one line.
			l.Points[i].High = l.Points[i].Value + 5
			l.Points[i].Late = i%50 == 0
		}
		svg := string(l.SVG())
		require.Less(t, len(svg), 48<<10, length)
		require.LessOrEqual(t, strings.Count(attribute(t, svg, "data-values"), ","), 799, length)
	}
	t.Run("a peak stays visible", func(t *testing.T) {
		t.Parallel()
		l := line(t, from, 90*24*time.Hour)
		l.Points[5000].High = 4321
		require.Contains(t, attribute(t, string(l.SVG()), "data-values"), " 4321")
	})
	t.Run("short bands are joined", func(t *testing.T) {
		t.Parallel()
		l := line(t, from, 24*time.Hour)
		for at := from; at.Before(l.Window.To); at = at.Add(time.Second) {
			l.Bands = append(l.Bands, chart.Band{Window: roomsensor.Window{From: at, To: at.Add(time.Second)}})
		}
		require.LessOrEqual(t, strings.Count(string(l.SVG()), `class="chart-band"`), 210)
	})
}

func TestLineColumns(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)
	l := line(t, from, 7*24*time.Hour)
	l.Points = []chart.Point{
		{At: from.Add(-5 * time.Minute), Value: 1, Low: 1, High: 1}, // before the window
		{At: from, Value: 500, Low: 450, High: 600, Count: 3},
		{At: from.Add(10 * time.Minute), Value: 700, Low: 700, High: 700, Count: 1, Late: true},
		{At: from.Add(30 * time.Minute), Value: 800, Low: 800, High: 800},
		{At: l.Window.To, Value: 1, Low: 1, High: 1}, // after the window
	}
	svg := string(l.SVG())
	require.Equal(t, "900000", attribute(t, svg, "data-step"))
	require.Equal(t, strconv.FormatInt(from.UnixMilli(), 10), attribute(t, svg, "data-from"))
	require.Equal(t, "550 450 700*,,800", strings.TrimRight(attribute(t, svg, "data-values"), ","))
}

func TestLineSummary(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)
	l := line(t, from, 24*time.Hour)
	require.Equal(t, "Lowest 450, highest 950, mean 700 ppm. Newest: 695 ppm at Mon 2 Mar, 00:55. "+
		"Above 1200 ppm: 0 of 288 points. No gaps.", l.Summary())
	l.Thresholds = []chart.Threshold{{Value: 500}, {Value: 900, Above: true}}
	l.Points[3].Late = true
	remove(l, time.Hour, 4*time.Hour+5*time.Minute)
	require.Contains(t, l.Summary(), " Below 500 ppm: 59 of 251 points. Above 900 ppm: 53 of 251 points. "+
		"One gap of 3 h 5 min. Arrived late: 1 of 251 points.")
	remove(l, 6*time.Hour, 6*time.Hour+10*time.Minute)
	require.Contains(t, l.Summary(), "2 gaps, the longest 3 h 5 min.")
	l.Points = nil
	require.Equal(t, "No data in this window.", l.Summary())
}

// attribute returns an attribute of the outer element.
func attribute(t *testing.T, svg, name string) string {
	t.Helper()
	token, err := xml.NewDecoder(strings.NewReader(svg)).Token()
	require.NoError(t, err)
	for _, a := range token.(xml.StartElement).Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// pathOf returns the coordinates of the path with a class.
func pathOf(t *testing.T, l *chart.Line, class string) string {
	t.Helper()
	_, rest, ok := strings.Cut(string(l.SVG()), `<path class="`+class+`" d="`)
	require.True(t, ok)
	d, _, _ := strings.Cut(rest, `"`)
	return d
}

// elements calls do for each element of a drawing.
func elements(t *testing.T, svg string, do func(name string, attributes map[string]string)) {
	t.Helper()
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, svg)
		if start, ok := token.(xml.StartElement); ok {
			attributes := map[string]string{}
			for _, a := range start.Attr {
				attributes[a.Name.Local] = a.Value
			}
			do(start.Name.Local, attributes)
		}
	}
}
