package chart_test

import (
	"encoding/binary"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/chart"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/timezone"
)

// FuzzLine checks that every drawing is well-formed, has only finite numbers and keeps inside its viewBoxes. points has 8
// bytes for each point: how much later it is than the last one, and its value.
func FuzzLine(f *testing.F) {
	value := func(v float32) []byte {
		return binary.LittleEndian.AppendUint32([]byte{1, 0, 0, 0}, math.Float32bits(v))
	}
	var all []byte
	for _, v := range []float32{
		0, 1, -1, 400, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.NaN()), float32(math.Inf(1)),
	} {
		f.Add(value(v), "label", int64(0), int64(86400), int64(300), uint16(0))
		all = append(all, value(v)...)
	}
	f.Add(all, "<&\"'\x00\xff]]>", int64(1793000000), int64(90*86400), int64(3600), uint16(77))
	f.Add(all, "", int64(-62167219200), int64(math.MaxInt64), int64(1), uint16(300))
	f.Add(all, "", int64(0), int64(-5), int64(0), uint16(1))
	zones := timezone.Names()
	f.Fuzz(func(t *testing.T, points []byte, label string, from, length, step int64, zone uint16) {
		location, ok := timezone.Load(zones[int(zone)%len(zones)])
		require.True(t, ok)
		start := time.Unix(from%300_000_000_000, 0)
		l := chart.Line{
			ID: "id", Title: label, Unit: label, Zone: location, Step: time.Duration(step%1_000_000) * time.Second,
			Window: roomsensor.Window{From: start, To: start.Add(time.Duration(length%(400*86400)) * time.Second)},
		}
		at := start.Add(-time.Hour)
		for ; len(points) >= 8; points = points[8:] {
			at = at.Add(time.Duration(binary.LittleEndian.Uint16(points)) * time.Second)
			v := math.Float32frombits(binary.LittleEndian.Uint32(points[4:]))
			l.Points = append(l.Points, chart.Point{At: at, Value: v, Low: v, High: v * 1.5, Late: points[2]%2 == 1})
			l.Bands = append(l.Bands, chart.Band{Window: roomsensor.Window{From: at, To: at.Add(time.Second)}, Label: label})
			if v-v == 0 {
				l.Thresholds = []chart.Threshold{{Value: v, Above: points[3]%2 == 1}}
			}
		}
		requireInside(t, string(l.SVG()))
	})
}

var number = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// requireInside fails unless all coordinates of a drawing are numbers inside the element that contains them.
func requireInside(t *testing.T, svg string) {
	t.Helper()
	height, width, viewHeight := 0, 0, 0
	elements(t, svg, func(_ string, attributes map[string]string) {
		if box := strings.Fields(attributes["viewBox"]); len(box) == 4 {
			width, _ = strconv.Atoi(box[2])
			viewHeight, _ = strconv.Atoi(box[3])
		}
		if attributes["class"] == "chart" {
			height, _ = strconv.Atoi(attributes["height"])
		}
		for _, name := range []string{"x", "x1", "x2", "y", "y1", "y2", "width", "height"} {
			text, ok := attributes[name]
			if !ok || text == "-8" && attributes["class"] == "chart-value" {
				continue
			}
			most := float64(height)
			if text, ok = strings.CutSuffix(text, "%"); ok {
				most = 100
			}
			requireNumber(t, text, most)
		}
		requirePath(t, attributes["d"], width, viewHeight)
	})
}

func requireNumber(t *testing.T, text string, most float64) {
	t.Helper()
	require.Regexp(t, number, text)
	v, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	require.True(t, v >= 0 && v <= most, "%s is not from 0 to %v", text, most)
}

var pathToken = regexp.MustCompile(`[MlhZ]|-?[0-9]+`)

// requirePath follows the relative coordinates of a path.
func requirePath(t *testing.T, d string, width, height int) {
	t.Helper()
	coordinates := pathToken.FindAllString(d, -1)
	require.Equal(t, strings.ReplaceAll(d, " ", ""), strings.Join(coordinates, ""))
	x, y, absolute := 0, 0, false
	for len(coordinates) > 0 {
		switch coordinates[0] {
		case "M", "l":
			absolute = coordinates[0] == "M"
			coordinates = coordinates[1:]
		case "h": // Always 0.
			require.Equal(t, "0", coordinates[1])
			coordinates = coordinates[2:]
			continue
		case "Z":
			coordinates = coordinates[1:]
			continue
		}
		dx, err := strconv.Atoi(coordinates[0])
		require.NoError(t, err)
		dy, err := strconv.Atoi(coordinates[1])
		require.NoError(t, err)
		coordinates = coordinates[2:]
		if absolute {
			x, y = 0, 0
		}
		x, y = x+dx, y+dy
		require.True(t, 0 <= x && x <= width && 0 <= y && y <= height, "%d %d is not in %d %d: %s", x, y, width, height, d)
	}
}
