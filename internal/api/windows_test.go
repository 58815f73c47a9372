package api_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

const day = 24 * time.Hour

// before prints the instant that lies so long before the fixture's now.
func before(d time.Duration) string { return roomsensor.FormatTime(start.Add(-d)) }

// Reading n lies so many hours before now, on the edge of every window here; the windows are moved by a microsecond.
func TestEdgesOfWindows(t *testing.T) {
	t.Parallel()
	const tick = time.Microsecond
	f := setup(t)
	for _, n := range []int{0, 1, 2, 24, 25, 48} {
		f.addReading(t, deviceID, start.Add(-time.Duration(n)*time.Hour), float32(n))
	}
	for _, tc := range []struct {
		sentence, query string
		now             time.Duration // past the fixture's
		want            []int
	}{
		{"decision 3.1", "from=" + before(2*time.Hour) + "&to=" + before(time.Hour), 0, []int{2}},
		{"decision 3.1", "from=" + before(2*time.Hour-tick) + "&to=" + before(time.Hour), 0, []int{}},
		{"decision 3.1", "from=" + before(2*time.Hour) + "&to=" + before(time.Hour-tick), 0, []int{1, 2}},
		{"decision 3.1", "from=" + before(time.Hour) + "&to=" + before(time.Hour-tick), 0, []int{1}},
		{"decision 3.1", "last=2h", 0, []int{1, 2}},
		{"decision 3.1", "last=2h", tick, []int{0, 1}},
		{"decision 3.2", "", 0, []int{1, 2, 24}},
		{"decision 3.2", "", tick, []int{0, 1, 2}},
		{"decision 3.3", "from=" + before(2*time.Hour), 0, []int{1, 2}},
		{"decision 3.3", "from=" + before(2*time.Hour), tick, []int{0, 1, 2}},
		{"decision 3.3", "from=" + before(tick), 0, []int{}},
		{"decision 3.3", "from=" + before(0), tick, []int{0}},
		{"decision 3.4", "to=" + before(day), 0, []int{25, 48}},
		{"decision 3.4", "to=" + before(day-tick), 0, []int{24, 25}},
		{"decision 3.4", "to=" + before(-tick), 0, []int{0, 1, 2}},
	} {
		conformance.Covers(t, tc.sentence)
		f.clock.advance(tc.now)
		require.Equal(t, tc.want, f.numbers(t, tc.query), "%s %s", tc.query, tc.now)
		f.clock.advance(-tc.now)
	}
}

// windowFaults are queries and the parameter that is at fault.
var windowFaults = []struct {
	sentence, query string
	code            roomsensor.Code
	param           string
}{
	{"decision 3.5", "from=" + before(time.Hour) + "&to=" + before(time.Hour), roomsensor.CodeTimeRangeInvalid, "to"},
	{"decision 3.5", "to=" + before(time.Hour) + "&from=" + before(time.Hour), roomsensor.CodeTimeRangeInvalid, "to"},
	{"decision 3.5", "from=" + before(time.Hour) + "&to=" + before(time.Hour+time.Microsecond), roomsensor.CodeTimeRangeInvalid, "to"},
	{"decision 3.5", "from=9999-12-31T23:59:59Z&to=0000-01-01T00:00:00Z", roomsensor.CodeTimeRangeInvalid, "to"},
	{"decision 3.5", "from=" + before(-2*day) + "&to=" + before(-day), roomsensor.CodeTimeRangeInvalid, "to"},
	{"decision 3.6", "from=" + before(-time.Microsecond), roomsensor.CodeTimeRangeInvalid, "from"},
	{"decision 3.6", "from=9999-12-31T23:59:59.999999Z", roomsensor.CodeTimeRangeInvalid, "from"},
	{"decision 4.1", "from=" + before(90*day+time.Microsecond), roomsensor.CodeTimeRangeTooWide, "from"},
	{"decision 4.1", "from=" + before(91*day) + "&to=" + before(day-time.Microsecond), roomsensor.CodeTimeRangeTooWide, "from"},
	{"decision 4.1", "from=0000-01-01T00:00:00Z&to=9999-12-31T23:59:59Z", roomsensor.CodeTimeRangeTooWide, "from"},
	{"decision 4.1", "from=0000-01-01T00:00:00Z", roomsensor.CodeTimeRangeTooWide, "from"},
	{"decision 4.1", "last=91d", roomsensor.CodeTimeRangeTooWide, "last"},
	{"decision 4.1", "last=2161h", roomsensor.CodeTimeRangeTooWide, "last"},
	{"decision 4.1", "last=129601m", roomsensor.CodeTimeRangeTooWide, "last"},
	{"decision 4.1", "last=106751992d", roomsensor.CodeTimeRangeTooWide, "last"},
	{"decision 4.1", "last=9223372036854775808m", roomsensor.CodeTimeRangeTooWide, "last"},
	{"decision 4.1", "last=" + strings.Repeat("9", 4000) + "h", roomsensor.CodeTimeRangeTooWide, "last"},
}

func TestFaultsOfWindows(t *testing.T) {
	t.Parallel()
	f := setup(t)
	block := number(0xa5, 1)
	end := start.Add(-day)
	f.addAssignment(t, deviceID, block, start.Add(-2*day), &end)
	for _, tc := range windowFaults {
		conformance.Covers(t, tc.sentence, "decision 4.3")
		for _, path := range []string{readingsPath, "/readings.csv"} {
			f.get(t, path+"?"+tc.query).requireError(t, tc.code, tc.param)
			f.get(t, path+"?"+tc.query+"&assignment_id="+block.String()).requireError(t, tc.code, tc.param)
		}
	}
}

func TestWidestWindows(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 4.2")
	f := setup(t)
	f.addReading(t, deviceID, start.Add(-90*day), 90)
	for _, query := range []string{
		"last=90d", "last=2160h", "last=129600m", "last=" + strings.Repeat("0", 4000) + "90d", "from=" + before(90*day),
		"from=" + before(90*day) + "&to=" + before(0), "from=" + before(90*day+time.Hour) + "&to=" + before(time.Hour),
	} {
		require.Equal(t, []int{90}, f.numbers(t, query), query)
	}
}

// The block lasts from 200 to 100 days ago, and another one since 5 days.
func TestWindowsBesideAnAssignment(t *testing.T) {
	t.Parallel()
	f := setup(t)
	closed, open := number(0xa5, 1), number(0xa5, 2)
	end := start.Add(-100 * day)
	f.addAssignment(t, deviceID, closed, start.Add(-200*day), &end)
	f.addAssignment(t, deviceID, open, start.Add(-5*day), nil)
	for _, n := range []int{1, 3, 5, 6, 100, 101, 150, 199, 200, 201} {
		f.addReading(t, deviceID, start.Add(-time.Duration(n)*day), float32(n))
	}
	of := map[string]string{"closed": "&assignment_id=" + closed.String(), "open": "&assignment_id=" + strings.ToUpper(open.String())}
	for _, tc := range []struct {
		sentence, query, block string
		want                   []int
	}{
		{"decision 4.4", "", "closed", []int{101, 150, 199, 200}},
		{"decision 4.4", "", "open", []int{1, 3, 5}},
		{"decision 4.5", "from=" + before(210*day) + "&to=" + before(140*day), "closed", []int{150, 199, 200}},
		{"decision 4.5", "from=" + before(201*day) + "&to=" + before(200*day-time.Microsecond), "closed", []int{200}},
		{"decision 4.5", "from=" + before(201*day) + "&to=" + before(200*day), "closed", []int{}},
		{"decision 4.5", "from=" + before(100*day) + "&to=" + before(99*day), "closed", []int{}},
		{"decision 4.5", "from=" + before(90*day), "open", []int{1, 3, 5}},
		{"decision 4.5", "from=" + before(2*day), "open", []int{1}},
		{"decision 4.5", "to=" + before(4*day), "open", []int{5}},
		{"decision 4.5", "last=90d", "open", []int{1, 3, 5}},
		{"decision 4.5", "last=90d", "closed", []int{}},
	} {
		conformance.Covers(t, tc.sentence)
		require.Equal(t, tc.want, f.numbers(t, tc.query+of[tc.block]), "%s %s", tc.query, tc.block)
	}
}

func TestFormsOfLast(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 5.1", "decision 5.3")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-2*day), 2*288)
	for query, want := range map[string]int{
		"last=5m": 1, "last=10m": 2, "last=1m": 0, "last=1h": 12, "last=60m": 12, "last=01h": 12, "last=0001h": 12, "last=%31%68": 12,
		"last=1d": 288, "last=24h": 288, "last=1440m": 288, "last=00000000000000000000000000000000000001d": 288,
		"last=1h&from=x": 12, "from=&last=1h&to=": 12, "last=1h&from=" + before(time.Minute) + "&to=" + before(2*day): 12,
		"from=" + before(-day) + "&last=1h": 12, "from=0000-01-01T00:00:00Z&last=1h": 12, "last=1h&from=%FF&to=%00": 12,
	} {
		require.Len(t, f.numbers(t, query), want, query)
	}
}

func TestWhatIsNoLast(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 5.2")
	f := setup(t)
	for _, text := range []string{
		"", " ", "m", "h", "d", "0", "0m", "0h", "0d", "000d", "90", "-1h", "-0h", "+5m", " 5m", "5m ", "5 m", "5m\n", "\t5m", "5\x00m",
		"1.5h", "1.0h", "1,5h", "1e1h", "1_0m", "0x1h", "0b1h", "0o7h", "1w", "1s", "1y", "1M", "1H", "1D", "1hh", "h1", "1h1", "1h30m",
		"P1D", "PT1H", "1 hour", "１h", "٣h", "१h", "1ｈ", "²h", "½d", "Ⅷd", "∞d", "NaNd", "Infd", "\xff", "1\xff", "5m;",
	} {
		for _, path := range []string{readingsPath, "/readings.csv"} {
			query := "?last=" + url.QueryEscape(text)
			f.get(t, path+query).requireError(t, roomsensor.CodeTimeRangeInvalid, "last")
			f.get(t, path+query+"&from=x&to=y").requireError(t, roomsensor.CodeTimeRangeInvalid, "last")
		}
	}
}
