package chart_test

import (
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

var tickText = regexp.MustCompile(`<text class="chart-tick([^"]*)" x="([^%]*)%" y="(\d+)">([^<]*)</text>`)

// ticks returns the first lines of the labels of the time axis, with | before those that only wide screens show, and
// the second lines.
func ticks(svg string) (first, second []string) {
	lines := map[string][]string{}
	for _, match := range tickText.FindAllStringSubmatch(svg, -1) {
		label := match[4]
		if strings.Contains(match[1], "wide") {
			label = "|" + label
		}
		lines[match[3]] = append(lines[match[3]], label)
	}
	return lines["185"], lines["201"]
}

func TestLineTimeAxis(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, test := range []struct {
		name, zone, from string
		length           time.Duration
		first, second    string
	}{
		{
			"hour", "UTC", "2026-11-22T13:58:30Z", time.Hour,
			"14:00 |14:05 |14:10 14:15 |14:20 |14:25 14:30 |14:35 |14:40 14:45 |14:50 |14:55", "Sun 22 Nov",
		},
		{
			"day", "Europe/Berlin", "2026-11-21T13:05:00Z", day,
			"|16:00 18:00 |20:00 |22:00 00:00 |02:00 |04:00 06:00 |08:00 |10:00 12:00 |14:00", "Sat 21 Nov Sun 22 Nov",
		},
		{
			"the date of the first tick makes room", "UTC", "2026-11-21T21:00:00Z", day,
			"|22:00 00:00 |02:00 |04:00 06:00 |08:00 |10:00 12:00 |14:00 |16:00 18:00 |20:00", "Sun 22 Nov",
		},
		{
			"the clock is set back", "Europe/Berlin", "2026-10-24T22:00:00Z", 12 * time.Hour,
			"00:00 |01:00 |02:00 |02:00 03:00 |04:00 |05:00 06:00 |07:00 |08:00 09:00 |10:00", "Sun 25 Oct",
		},
		{
			"the clock is set forward", "Europe/Berlin", "2026-03-28T23:00:00Z", 12 * time.Hour,
			"00:00 |01:00 03:00 |04:00 |05:00 06:00 |07:00 |08:00 09:00 |10:00 |11:00 12:00", "Sun 29 Mar",
		},
		{
			"the clock is set forward over midnight", "Africa/Cairo", "2026-04-23T18:00:00Z", 12 * time.Hour,
			"|20:00 21:00 |22:00 |23:00 01:00 |02:00 03:00 |04:00 |05:00 06:00 |07:00 |08:00", "Thu 23 Apr Fri 24 Apr",
		},
		{
			"days across a change of clocks", "Europe/Berlin", "2026-10-22T10:00:00Z", 7 * day,
			"|23 Oct 24 Oct |25 Oct 26 Oct |27 Oct 28 Oct |29 Oct", "|Fri Sat |Sun Mon |Tue Wed |Thu",
		},
		{
			"weeks", "America/New_York", "2026-08-24T00:00:00Z", 90 * day,
			"|24 Aug 31 Aug |7 Sep |14 Sep |21 Sep 28 Sep |5 Oct |12 Oct |19 Oct 26 Oct |2 Nov |9 Nov |16 Nov", "",
		},
		{
			"months", "Asia/Kathmandu", "2026-08-24T00:00:00Z", 300 * day,
			"|Sep Oct |Nov |Dec Jan |Feb |Mar Apr |May |Jun", "|2026 2027",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			from, ok := roomsensor.ParseTime(test.from)
			require.True(t, ok)
			l := chart.Line{
				ID: "x", Zone: zone(t, test.zone), Step: time.Hour,
				Window: roomsensor.Window{From: from, To: from.Add(test.length)},
			}
			first, second := ticks(string(l.SVG()))
			require.Equal(t, test.first, strings.Join(first, " "))
			require.Equal(t, test.second, strings.Join(second, " "))
		})
	}
}

// TestLineTimeAxisFormat checks that the labels have the format of the person, and are short for whole hours of 12.
func TestLineTimeAxisFormat(t *testing.T) {
	t.Parallel()
	american := func(at time.Time, layout string) string {
		return at.Format(strings.NewReplacer("15:04", "3:04 PM", "2 Jan", "Jan 2").Replace(layout))
	}
	for length, want := range map[time.Duration]string{
		3 * time.Hour: "|11:30 PM 12 AM |12:30 AM 1 AM |1:30 AM 2 AM", 7 * 24 * time.Hour: "Nov 23 |Nov 24 Nov 25 |Nov 26 Nov 27 |Nov 28 Nov 29",
	} {
		from := time.Date(2026, 11, 22, 23, 20, 0, 0, time.UTC)
		l := chart.Line{
			ID: "x", Zone: time.UTC, Step: time.Hour, Format: american,
			Window: roomsensor.Window{From: from, To: from.Add(length)},
		}
		first, _ := ticks(string(l.SVG()))
		require.Equal(t, want, strings.Join(first, " "))
	}
}

// TestLineTimeAxisZones checks in all zones, around all changes of the clock in a year, that a tick is where its label
// says, and that there are neither too few nor too many.
func TestLineTimeAxisZones(t *testing.T) {
	t.Parallel()
	for _, name := range timezone.Names() {
		location := zone(t, name)
		for at := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC); at.Year() == 2026; {
			_, change := at.In(location).ZoneBounds()
			if change.IsZero() {
				break
			}
			at = change.UTC()
			for _, length := range []time.Duration{8 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour} {
				window := roomsensor.Window{From: at.Add(-length / 2), To: at.Add(length / 2)}
				l := chart.Line{ID: "x", Zone: location, Step: time.Hour, Window: window}
				requireTicks(t, &l)
			}
		}
	}
}

func requireTicks(t *testing.T, l *chart.Line) {
	t.Helper()
	matches := tickText.FindAllStringSubmatch(string(l.SVG()), -1)
	count := 0
	for _, match := range matches {
		if match[3] != "185" {
			continue
		}
		count++
		part, err := strconv.ParseFloat(match[2], 64)
		require.NoError(t, err)
		at := l.Window.From.Add(time.Duration(part / 100 * float64(l.Window.To.Sub(l.Window.From)))).In(l.Zone)
		layout := "15:04"
		if !strings.Contains(match[4], ":") {
			layout = "2 Jan"
		}
		// Positions are rounded: in 7 days, to 6 seconds.
		labels := []string{at.Add(-10 * time.Second).Format(layout), at.Add(10 * time.Second).Format(layout)}
		require.Contains(t, labels, match[4], "%s %s", l.Zone, at)
	}
	require.True(t, count >= 6 && count <= 14, "%d ticks in %s", count, l.Zone)
}
