package api_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

type reading struct {
	BucketAt   string   `json:"bucket_at"`
	CO2        *float64 `json:"co2_ppm"`
	Temp       *float64 `json:"temp_c"`
	Humidity   *float64 `json:"humidity_pct"`
	Lux        *float64 `json:"lux"`
	Sound      *float64 `json:"spl_db"`
	IngestedAt string   `json:"ingested_at"`
}

var readingsPath = "/devices/" + deviceID.String() + "/readings"

// co2s are the co2_ppm of a page, which number the readings of a fixture.
func co2s(page list[reading]) []int {
	numbers := make([]int, len(page.Data))
	for i, r := range page.Data {
		numbers[i] = int(*r.CO2)
	}
	return numbers
}

func TestReadingsGolden(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, readings")
	f := setup(t)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, ingested_at) VALUES
		($1, '2026-11-20 09:55Z', 612, 21.4, 40.1, 120, 38.2, '2026-11-20 09:56:01.234567Z'),
		($1, '2026-11-20 09:50Z', 0, -0.1, NULL, 100000, 0.000001, '2026-11-20 09:56:01.5Z'),
		($1, '2026-11-20 09:40Z', 16777216, 0.3, 1e-10, 3.4028235e38, 33.333332, '2026-11-20 09:56:01.000001Z')`, deviceID)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, ingested_at)
		VALUES ($1, '2026-11-20 09:45Z', '2026-11-20 09:56:01Z')`, deviceID)
	got := f.get(t, readingsPath)
	requireGolden(t, "readings.json.golden", got.body)
	require.Equal(t, "application/json; charset=utf-8", got.header.Get("Content-Type"))
	requireGolden(t, "empty.json.golden", f.get(t, readingsPath+"?last=1m").body)
}

// Decisions 3 to 5.
func TestWindows(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, readings, from", "spec 4, readings, no time", "spec 4, readings, to",
		"spec 4, readings, last", "spec 4, readings, last wins", "spec 4, GET /readings.csv, window",
		"spec 1, convention 1, accepted")
	f := setup(t)
	// Reading i lies i hours before now.
	for i := range 50 {
		f.addReading(t, deviceID, start.Add(-time.Duration(i)*time.Hour), float32(i))
	}
	hour := func(n int) string { return roomsensor.FormatTime(start.Add(-time.Duration(n) * time.Hour)) }
	for query, want := range map[string][]int{
		"":                                     between(1, 24),
		"last=24h":                             between(1, 24),
		"last=3h":                              {1, 2, 3},
		"last=180m":                            {1, 2, 3},
		"last=1d":                              between(1, 24),
		"last=0003h":                           {1, 2, 3},
		"last=90d":                             between(1, 49),
		"from=" + hour(3):                      {1, 2, 3},
		"from=" + hour(4) + "&to=" + hour(2):   {3, 4},
		"to=" + hour(24):                       between(25, 48),
		"last=1h&from=x&to=y":                  {1},
		"last=1h&from=" + hour(9):              {1},
		"from=" + hour(-5) + "&to=" + hour(-6): {},
		"from=2026-11-20T08:00:00.000000001Z":  {1, 2},
		"from=2026-11-20T08:00:00.000001Z":     {1},
		"from=" + start.AddDate(0, 0, -90).Format(time.RFC3339): between(1, 49),
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, want, f.numbers(t, query))
		})
	}
}

// Decisions 2 to 5, on both endpoints that have a window.
func TestRefusedWindows(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, readings, rule 1", "spec 4, readings, to after from",
		"spec 4, readings, last, maximum", "spec 4, GET /readings.csv, window", "spec 8, time range",
		"spec 1, convention 1, accepted")
	f := setup(t)
	hour := func(n int) string { return roomsensor.FormatTime(start.Add(-time.Duration(n) * time.Hour)) }
	for query, tc := range map[string]struct {
		code  roomsensor.Code
		param string
	}{
		"last=91d":                           {roomsensor.CodeTimeRangeTooWide, "last"},
		"last=2161h":                         {roomsensor.CodeTimeRangeTooWide, "last"},
		"last=129601m":                       {roomsensor.CodeTimeRangeTooWide, "last"},
		"last=99999999999999999999d":         {roomsensor.CodeTimeRangeTooWide, "last"},
		"last=0d":                            {roomsensor.CodeTimeRangeInvalid, "last"},
		"last=-1h":                           {roomsensor.CodeTimeRangeInvalid, "last"},
		"last=1.5h":                          {roomsensor.CodeTimeRangeInvalid, "last"},
		"last=90":                            {roomsensor.CodeTimeRangeInvalid, "last"},
		"last=1w":                            {roomsensor.CodeTimeRangeInvalid, "last"},
		"from=2026-11-20":                    {roomsensor.CodeTimeRangeInvalid, "from"},
		"from=2026-11-20T08:00:00":           {roomsensor.CodeTimeRangeInvalid, "from"},
		"from=2026-11-20T08:00:00%2B00:00":   {roomsensor.CodeTimeRangeInvalid, "from"},
		"from=2026-11-20t08:00:00z":          {roomsensor.CodeTimeRangeInvalid, "from"},
		"to=2026-11-31T08:00:00Z":            {roomsensor.CodeTimeRangeInvalid, "to"},
		"from=" + hour(0):                    {roomsensor.CodeTimeRangeInvalid, "from"},
		"from=" + hour(-1):                   {roomsensor.CodeTimeRangeInvalid, "from"},
		"from=" + hour(2) + "&to=" + hour(2): {roomsensor.CodeTimeRangeInvalid, "to"},
		"from=" + hour(2) + "&to=" + hour(3): {roomsensor.CodeTimeRangeInvalid, "to"},
		"from=" + hour(90*24+1):              {roomsensor.CodeTimeRangeTooWide, "from"},
		"from=2026-01-01T00:00:00Z&to=2026-04-01T00:00:00.000001Z": {roomsensor.CodeTimeRangeTooWide, "from"},
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			f.get(t, readingsPath+"?"+query).requireError(t, tc.code, tc.param)
			f.get(t, "/readings.csv?"+query).requireError(t, tc.code, tc.param)
		})
	}
}

func between(first, last int) []int {
	numbers := []int{}
	for i := first; i <= last; i++ {
		numbers = append(numbers, i)
	}
	return numbers
}

// Spec 4, readings, rules 2 to 5.
func TestReadingsOfAnAssignment(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, readings, assignment_id", "spec 4, readings, rule 2", "spec 4, readings, rule 3",
		"spec 4, readings, rule 3, outside", "spec 4, readings, rule 4", "spec 4, readings, rule 4, alike",
		"spec 4, readings, rule 5", "spec 9, rule 4, filter")
	f := setup(t)
	for i := range 50 {
		f.addReading(t, deviceID, start.Add(-time.Duration(i)*time.Hour), float32(i))
	}
	f.addReading(t, deviceID, start.Add(5*time.Minute), -1)
	closed, open, foreign := number(0xa5, 1), number(0xa5, 2), number(0xa5, 3)
	other := number(0xde, 2)
	f.addDevice(t, teamID, other, "dev:2")
	end := start.Add(-10 * time.Hour)
	f.addAssignment(t, deviceID, closed, start.Add(-20*time.Hour), &end)
	f.addAssignment(t, deviceID, open, start.Add(-5*time.Hour), nil)
	f.addAssignment(t, other, foreign, start.Add(-5*time.Hour), nil)
	hour := func(n int) string { return roomsensor.FormatTime(start.Add(-time.Duration(n) * time.Hour)) }
	for query, want := range map[string][]int{
		"assignment_id=" + closed.String():                                           between(11, 20),
		"assignment_id=" + open.String():                                             {-1, 0, 1, 2, 3, 4, 5},
		"last=2h&assignment_id=" + open.String():                                     {1, 2},
		"last=15h&assignment_id=" + closed.String():                                  between(11, 15),
		"last=2h&assignment_id=" + closed.String():                                   {},
		"from=" + hour(30) + "&assignment_id=" + closed.String():                     between(11, 20),
		"from=" + hour(40) + "&to=" + hour(30) + "&assignment_id=" + closed.String(): {},
		"from=" + hour(5) + "&assignment_id=" + closed.String():                      {},
		"to=" + hour(12) + "&assignment_id=" + closed.String():                       between(13, 20),
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, want, f.numbers(t, query))
		})
	}
	f.get(t, readingsPath+"?assignment_id=7").requireError(t, roomsensor.CodeValidationFailed, "assignment_id")
	unknown := f.get(t, readingsPath+"?assignment_id="+number(0xa5, 9).String())
	unknown.requireError(t, roomsensor.CodeAssignmentNotFound, "assignment_id")
	elsewhere := f.get(t, readingsPath+"?assignment_id="+foreign.String())
	elsewhere.requireError(t, roomsensor.CodeAssignmentNotFound, "assignment_id")
	require.Equal(t, fleeting.ReplaceAll(unknown.body, nil), fleeting.ReplaceAll(elsewhere.body, nil))
	tooWide := f.get(t, readingsPath+"?last=91d&assignment_id="+closed.String())
	tooWide.requireError(t, roomsensor.CodeTimeRangeTooWide, "last")
}

// An assignment alone may be longer than 90 days (decision 4).
func TestLongAssignment(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.addAssignment(t, deviceID, number(0xa5, 1), start.AddDate(-1, 0, 0), nil)
	f.addReading(t, deviceID, start.AddDate(0, -11, 0), 1)
	f.addReading(t, deviceID, start.AddDate(-1, -1, 0), 2)
	page := decode[list[reading]](t, f.get(t, readingsPath+"?assignment_id="+number(0xa5, 1).String()))
	require.Equal(t, []int{1}, co2s(page))
}

func TestReadingsOfADeviceWithoutAny(t *testing.T) {
	t.Parallel()
	f := setup(t)
	page := decode[list[reading]](t, f.get(t, readingsPath))
	require.Empty(t, page.Data)
	require.NotNil(t, page.Data)
	require.Nil(t, page.NextCursor)
	f.get(t, "/devices/"+number(9, 9).String()+"/readings").requireError(t, roomsensor.CodeDeviceNotFound, "device_id")
}

// walk follows the cursors to the last page.
func (f *fixture) walk(t *testing.T, path, first string) (pages []list[reading]) {
	t.Helper()
	query := first
	for {
		page := decode[list[reading]](t, f.get(t, path+"?"+query))
		pages = append(pages, page)
		if page.NextCursor == nil {
			return pages
		}
		query = "cursor=" + url.QueryEscape(*page.NextCursor)
	}
}

func TestPagesOfReadings(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, readings, cursor", "spec 4, readings, response", "spec 4, readings, page",
		"spec 8, page size")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-10*24*time.Hour), 2500)
	for _, tc := range []struct {
		query string
		sizes []int
	}{
		{"last=90d", []int{1000, 1000, 500}},
		{"last=90d&limit=1000", []int{1000, 1000, 500}},
		{"last=90d&limit=1250", nil},
		{"last=90d&limit=625", []int{625, 625, 625, 625}},
	} {
		if tc.sizes == nil {
			f.get(t, readingsPath+"?"+tc.query).requireError(t, roomsensor.CodeValidationFailed, "limit")
			continue
		}
		next := 2499
		for i, page := range f.walk(t, readingsPath, tc.query) {
			require.Len(t, page.Data, tc.sizes[i], "%s page %d", tc.query, i)
			for _, n := range co2s(page) {
				require.Equal(t, next, n, "newest first, none twice, none left out")
				next--
			}
		}
		require.Equal(t, -1, next)
	}
}
