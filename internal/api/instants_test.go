package api_test

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// Every time of every answer, whatever the database holds and in which zone it was said.
func TestInstantsArePrintedInUTC(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 1.1", "decision 1.2")
	f := setup(t)
	block := number(0xa5, 1)
	f.addAssignment(t, deviceID, block, start.Add(-time.Hour), nil)
	f.addReading(t, deviceID, start.Add(-time.Hour), 1)
	device := "/devices/" + deviceID.String()
	for stored, want := range map[string]string{
		"2026-11-20 09:00:00+00":              "2026-11-20T09:00:00Z",
		"2026-11-20 09:00:00.000001+00":       "2026-11-20T09:00:00.000001Z",
		"2026-11-20 09:00:00.5+00":            "2026-11-20T09:00:00.5Z",
		"2026-11-20 09:00:00.120300+00":       "2026-11-20T09:00:00.1203Z",
		"2026-11-20 09:00:00.999999+00":       "2026-11-20T09:00:00.999999Z",
		"2026-11-20 00:30:00+13":              "2026-11-19T11:30:00Z",
		"2026-11-19 23:59:59.25-09:30":        "2026-11-20T09:29:59.25Z",
		"0999-01-02 03:04:05 UTC":             "0999-01-02T03:04:05Z",
		"2026-10-25 02:30:00.1 Europe/Berlin": "2026-10-25T01:30:00.1Z",
	} {
		f.exec(t, `UPDATE devices SET last_seen_at = $1::text::timestamptz`, stored)
		f.exec(t, `UPDATE assignments SET started_at = $1::text::timestamptz, ended_at = NULL`, stored)
		f.exec(t, `UPDATE readings SET ingested_at = $1::text::timestamptz`, stored)
		patched := f.patch(t, `{"metadata":{}}`).body
		for _, answer := range [][]byte{patched, f.get(t, device).body, f.get(t, "/devices").body, f.get(t, "/devices/current").body} {
			require.Contains(t, string(answer), `"last_seen_at":"`+want+`"`)
			require.Contains(t, string(answer), `"started_at":"`+want+`"`)
		}
		require.Contains(t, string(f.get(t, "/devices/current").body), `"ingested_at":"`+want+`"`)
		require.Contains(t, string(f.get(t, readingsPath).body), `"ingested_at":"`+want+`"`)
		f.exec(t, `UPDATE assignments SET ended_at = started_at, started_at = started_at - INTERVAL '1 day'`)
		require.Contains(t, string(f.get(t, device+"/assignments").body), `"ended_at":"`+want+`"`)
	}
}

// number5 is the five metrics of a row as they were printed.
type number5 [roomsensor.MetricCount]string

// Random bits are a number of any size; what is printed must be the shortest that reads back, in JSON and in CSV.
func TestNumbersArePrintedInFullAndNoLonger(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 1.4")
	f := setup(t)
	dice := rand.New(rand.NewPCG(1, 4)) // A seed of its own keeps it the same.
	const rows = 60
	stored := make([][roomsensor.MetricCount]float32, rows)
	for i := range stored {
		for m := range stored[i] {
			for x := math.NaN(); math.IsNaN(x) || math.IsInf(x, 0); x = float64(stored[i][m]) {
				stored[i][m] = math.Float32frombits(dice.Uint32())
			}
		}
		row := stored[i]
		f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			deviceID, start.Add(-time.Duration(i+1)*roomsensor.BucketLength), row[0], row[1], row[2], row[3], row[4])
	}
	inJSON := regexp.MustCompile(`"co2_ppm":(.*?),"temp_c":(.*?),"humidity_pct":(.*?),"lux":(.*?),"spl_db":(.*?),`).
		FindAllStringSubmatch(string(f.get(t, readingsPath).body), -1)
	inCSV, err := csv.NewReader(strings.NewReader(string(f.get(t, "/readings.csv").body))).ReadAll()
	require.NoError(t, err)
	require.Len(t, inJSON, rows)
	for i := range stored {
		text := number5(inJSON[i][1:])
		require.Equal(t, text, number5(inCSV[rows-i][3:8]), "the CSV prints as the JSON does")
		for m, x := range stored[i] {
			requireShortest(t, x, text[m])
		}
	}
}

// requireShortest holds a text to decision 1 without the routine that made it.
func requireShortest(t *testing.T, x float32, text string) {
	t.Helper()
	require.Regexp(t, `^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`, text)
	back, err := strconv.ParseFloat(text, 32)
	require.NoError(t, err)
	require.Equal(t, x, float32(back), text)
	digits := len(strings.Trim(strings.Trim(strings.Replace(text, ".", "", 1), "-"), "0"))
	if digits > 1 {
		rounded, err := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'e', digits-2, 32), 32)
		require.NoError(t, err)
		require.NotEqual(t, x, float32(rounded), "%s has a digit too many", text)
	}
}

// atEight are forms of a from and what they mean for the readings of 08:00 and 08:05.
var atEight = map[string]bool{ // whether 08:00 is within [from, ...)
	"2026-11-20T08:00:00Z":           true,
	"2026-11-20T08:00:00.0Z":         true,
	"2026-11-20T08:00:00.00Z":        true,
	"2026-11-20T08:00:00.000Z":       true,
	"2026-11-20T08:00:00.0000Z":      true,
	"2026-11-20T08:00:00.00000Z":     true,
	"2026-11-20T08:00:00.000000Z":    true,
	"2026-11-20T08:00:00.0000009Z":   true,
	"2026-11-20T08:00:00.00000099Z":  true,
	"2026-11-20T08:00:00.000000999Z": true,
	"2026-11-20T07:59:59.999999999Z": true,
	"2026-11-20T08:00:00.1Z":         false,
	"2026-11-20T08:00:00.01Z":        false,
	"2026-11-20T08:00:00.001Z":       false,
	"2026-11-20T08:00:00.0001Z":      false,
	"2026-11-20T08:00:00.00001Z":     false,
	"2026-11-20T08:00:00.000001Z":    false,
	"2026-11-20T08:00:00.0000019Z":   false,
	"2026-11-20T08:00:00.00000100Z":  false,
	"2026-11-20T08:00:00.000001999Z": false,
}

func TestFormsOfAnInstant(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 2.1", "decision 2.2")
	f := setup(t)
	eight := start.Add(-2 * time.Hour)
	f.addReading(t, deviceID, eight, 800)
	f.addReading(t, deviceID, eight.Add(5*time.Minute), 805)
	for text, within := range atEight {
		f.forgetRequests(t)
		from, to := []int{805}, []int{800}
		if within {
			from, to = []int{805, 800}, []int{}
		}
		require.Equal(t, from, f.numbers(t, "from="+text), text)
		require.Equal(t, to, f.numbers(t, "from=2026-11-20T07:00:00Z&to="+text), text)
	}
	for _, query := range []string{
		"from=0000-01-01T00:00:00Z&to=0000-01-02T00:00:00Z", "to=0000-01-02T00:00:00Z", "to=0001-01-01T00:00:00Z",
		"from=9999-12-30T23:59:59.999999999Z&to=9999-12-31T23:59:59.999999999Z", "to=9999-12-31T23:59:59Z",
		"from=2024-02-29T00:00:00Z&to=2024-03-01T00:00:00Z",
	} {
		require.Empty(t, f.numbers(t, query), query)
	}
}

// numbers are the co2_ppm that a query selects, newest first; the export has to select the same.
func (f *fixture) numbers(t *testing.T, query string) []int {
	t.Helper()
	numbers := co2s(decode[list[reading]](t, f.get(t, readingsPath+"?"+query)))
	exported := f.get(t, "/readings.csv?"+query)
	require.Equal(t, http.StatusOK, exported.status, string(exported.body))
	rows, err := csv.NewReader(strings.NewReader(string(exported.body))).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, len(numbers)+1, query)
	for i, row := range rows[1:] {
		require.Equal(t, strconv.Itoa(numbers[len(numbers)-1-i]), row[3], query)
	}
	return numbers
}

// noInstants are texts that are near a time and none.
var noInstants = []string{
	"", " ", "now", "0", "1763625600", "2026", "2026-11", "2026-11-20", "2026-11-20Z", "2026-11-20T08Z", "2026-11-20T08:00Z",
	"2026-11-20T08:00:00", "2026-11-20T08:00:00.5", "2026-11-20T08:00:00+00:00", "2026-11-20T08:00:00-00:00",
	"2026-11-20T08:00:00+01:00", "2026-11-20T08:00:00+0000", "2026-11-20T08:00:00+00", "2026-11-20T08:00:00Z+00:00",
	"2026-11-20T08:00:00ZZ", "2026-11-20T08:00:00 Z", "2026-11-20T08:00:00 UTC", "2026-11-20T08:00:00[UTC]",
	"2026-11-20t08:00:00Z", "2026-11-20T08:00:00z", "2026-11-20 08:00:00Z", "2026-11-20_08:00:00Z", "20261120T080000Z",
	" 2026-11-20T08:00:00Z", "2026-11-20T08:00:00Z ", "2026-11-20T08:00:00Z\n", "2026-11-20T08:00:00Z\x00", "\"2026-11-20T08:00:00Z\"",
	"2026-11-20T08:00:00.Z", "2026-11-20T08:00:00,5Z", "2026-11-20T08:00:00.5,Z", "2026-11-20T08:00:00.1234567890Z",
	"2026-11-20T08:00:00.-1Z", "2026-11-20T08:00:00.+1Z", "2026-11-20T08:00:00.1e3Z", "2026-11-20T08:00:00.1 Z",
	"2026-11-20T24:00:00Z", "2026-11-20T25:00:00Z", "2026-11-20T08:60:00Z", "2026-11-20T08:00:60Z", "2016-12-31T23:59:60Z",
	"2026-13-20T08:00:00Z", "2026-00-20T08:00:00Z", "2026-11-00T08:00:00Z", "2026-11-31T08:00:00Z", "2026-02-29T08:00:00Z",
	"2026-1-20T08:00:00Z", "2026-11-2T08:00:00Z", "2026-11-20T8:00:00Z", "2026-11-20T08:0:00Z", "2026-11-20T08:00:0Z",
	"26-11-20T08:00:00Z", "02026-11-20T08:00:00Z", "+2026-11-20T08:00:00Z", "-2026-11-20T08:00:00Z", "+12026-11-20T08:00:00Z",
	"2026-W47-5T08:00:00Z", "2026-324T08:00:00Z", "２０２６-11-20T08:00:00Z", "2026‐11‐20T08:00:00Z", "2026-11-20T08:00:00Ｚ", "\xff", "%",
}

func TestWhatIsNoInstant(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 2.1", "decision 2.3")
	f := setup(t)
	for _, text := range noInstants {
		f.forgetRequests(t)
		sent := url.QueryEscape(text)
		for _, path := range []string{readingsPath, "/readings.csv"} {
			for query, param := range map[string]string{
				"from=%s": "from", "to=%s": "to", "from=%s&to=2026-11-20T08:00:00Z": "from", "from=2026-11-20T07:00:00Z&to=%s": "to",
				"to=%[1]s&from=%[1]s": "from",
			} {
				f.get(t, path+"?"+fmt.Sprintf(query, sent)).requireError(t, roomsensor.CodeTimeRangeInvalid, param)
			}
		}
	}
}
