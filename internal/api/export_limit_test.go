package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// fillDevices gives n devices of the team the same number of buckets from an
// instant on, the fixture's own device among them.
func (f *fixture) fillDevices(t *testing.T, n, buckets int, from time.Time) {
	t.Helper()
	f.exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(2, $2) i`, teamID, n)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm)
		SELECT d.id, $1::timestamptz + i * INTERVAL '5 minutes', 1 FROM devices d, generate_series(0, $2 - 1) i`, from, buckets)
	f.exec(t, "ANALYZE readings")
}

// tooLarge is the message of an export that is refused.
func (f *fixture) tooLarge(t *testing.T, query string) string {
	t.Helper()
	got := f.get(t, "/readings.csv?"+query)
	got.requireError(t, roomsensor.CodeCSVTooLarge, "")
	require.Empty(t, got.header.Get("X-Row-Count"))
	var envelope errorBody
	require.NoError(t, json.Unmarshal(got.body, &envelope))
	return envelope.Error.Message
}

// requireLongest holds the window that a message suggests to what it promises:
// it fits beside the same other parameters, and with an instant more it would
// not, either by its rows or by its width.
func (f *fixture) requireLongest(t *testing.T, message, others string) (rows int) {
	t.Helper()
	window := suggested.FindStringSubmatch(message)
	require.NotNil(t, window, message)
	ask := func(to string) response {
		return f.do(t, http.MethodHead, "/readings.csv?from="+url.QueryEscape(window[1])+"&to="+url.QueryEscape(to)+others, "")
	}
	fits := ask(window[2])
	require.Equal(t, http.StatusOK, fits.status, message)
	until, ok := roomsensor.ParseTime(window[2])
	require.True(t, ok)
	require.Contains(t, []int{http.StatusRequestEntityTooLarge, http.StatusBadRequest},
		ask(roomsensor.FormatTime(until.Add(time.Microsecond))).status)
	rows, err := strconv.Atoi(fits.header.Get("X-Row-Count"))
	require.NoError(t, err)
	return rows
}

// Up to a million the count is exact; the window fits beside the other filters.
func TestCountOfARefusedExport(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 30.1", "decision 30.3", "decision 30.4", "decision 30.5")
	f := setup(t)
	f.fillDevices(t, 40, 25_000, start.Add(-88*24*time.Hour))
	message := f.tooLarge(t, "last=90d")
	require.Contains(t, message, " 1000000 rows")
	require.Equal(t, 250_000, f.requireLongest(t, message, ""))

	f.addReading(t, deviceID, start.Add(-30*time.Minute), 1)
	message = f.tooLarge(t, "last=90d")
	require.Contains(t, message, "more than 1,000,000 rows")
	require.Regexp(t, suggested, message)

	// Off the grid, and of 13 devices, whose rows do not divide the limit.
	var named []string
	for _, d := range decode[list[struct {
		DeviceID string `json:"device_id"`
	}]](t, f.get(t, "/devices?limit=13")).Data {
		named = append(named, d.DeviceID)
	}
	devices := "&devices=" + strings.Join(named, ",")
	from := roomsensor.FormatTime(start.Add(-88*24*time.Hour + 17*time.Second + time.Microsecond))
	message = f.tooLarge(t, "from="+from+devices)
	require.Contains(t, message, " "+strconv.Itoa(13*24_999)+" rows")
	require.Contains(t, message, "from="+from+"&")
	require.Equal(t, 250_000/13*13, f.requireLongest(t, message, devices))
}

// An assignment alone knows no 90 days, but the window that is suggested does.
func TestSuggestedWindowHas90DaysAtMost(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 30.1", "decision 30.2", "decision 30.3", "decision 30.5")
	f := setup(t)
	began := start.Add(-900 * 24 * time.Hour)
	f.addReadings(t, deviceID, began, 250_000)
	block := number(0xa5, 1)
	f.addAssignment(t, deviceID, block, began, nil)
	only := "assignment_id=" + block.String()
	require.Equal(t, "250000", f.do(t, http.MethodHead, "/readings.csv?"+only, "").header.Get("X-Row-Count"))
	require.Equal(t, "250000", f.do(t, http.MethodHead, "/readings.csv?shape=wide&"+only, "").header.Get("X-Row-Count"))

	f.addReading(t, deviceID, start.Add(-time.Hour), 1)
	require.Equal(t, http.StatusRequestEntityTooLarge, f.do(t, http.MethodHead, "/readings.csv?shape=wide&"+only, "").status)
	message := f.tooLarge(t, only)
	require.Contains(t, message, " 250001 rows")
	require.Contains(t, message, "from="+roomsensor.FormatTime(began)+"&to="+roomsensor.FormatTime(began.Add(90*24*time.Hour)))
	require.Equal(t, 90*24*12, f.requireLongest(t, message, "&"+only))
}

// A bucket that holds more rows than are allowed: it takes more devices than
// can be made here in time, so a view stands in for their readings.
func TestNoWindowFits(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 30.6")
	f := setup(t)
	f.exec(t, `ALTER TABLE readings RENAME TO stored`)
	f.exec(t, `CREATE VIEW readings AS SELECT s.device_id, s.bucket_at FROM stored s CROSS JOIN generate_series(1, 250001)`)
	f.exec(t, `INSERT INTO stored (device_id, bucket_at) VALUES ($1, $2)`, deviceID, start.Add(-time.Hour))
	for from, fits := range map[time.Duration]bool{0: false, 299 * time.Second: true, 300 * time.Second: true} {
		message := f.tooLarge(t, "from="+roomsensor.FormatTime(start.Add(-time.Hour-from)))
		require.Contains(t, message, " 250001 rows; at most 250000 are allowed.")
		require.Contains(t, message, "ame fewer devices.")
		require.Equal(t, fits, suggested.MatchString(message), message)
		if fits {
			require.Zero(t, f.requireLongest(t, message, ""))
		}
	}
}
