package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

var suggested = regexp.MustCompile(`from=(\S+)&to=(\S+)`)

// requireTooLarge requires 413 and returns the message.
func (f *fixture) requireTooLarge(t *testing.T, query string) string {
	t.Helper()
	got := f.get(t, "/readings.csv?"+query)
	got.requireError(t, roomsensor.CodeCSVTooLarge, "")
	require.Empty(t, got.header.Get("X-Row-Count"))
	var envelope errorBody
	require.NoError(t, json.Unmarshal(got.body, &envelope))
	return envelope.Error.Message
}

// requireLongest requires that the window which a message suggests fits beside the other parameters, and that a
// microsecond more would not, because of the rows or of the width. It returns the rows of the window.
func (f *fixture) requireLongest(t *testing.T, message, others string) (rows int) {
	t.Helper()
	window := suggested.FindStringSubmatch(message)
	require.NotNil(t, window, message)
	head := func(to string) response {
		return f.head(t, "/readings.csv?from="+url.QueryEscape(window[1])+"&to="+url.QueryEscape(to)+others)
	}
	fits := head(window[2]).requireOK(t)
	until, ok := roomsensor.ParseTime(window[2])
	require.True(t, ok)
	longer := head(roomsensor.FormatTime(until.Add(time.Microsecond)))
	require.Contains(t, []int{http.StatusRequestEntityTooLarge, http.StatusBadRequest}, longer.status)
	rows, err := strconv.Atoi(fits.header.Get("X-Row-Count"))
	require.NoError(t, err)
	return rows
}

// multiplyReadings replaces the table of readings by a view, in which a reading counts as many times as its co2_ppm
// says: a test of a million readings is fast.
func (f *fixture) multiplyReadings(t *testing.T) {
	t.Helper()
	f.exec(t, `DROP TRIGGER readings_foreign ON readings`) // The state of devices is not read.
	f.exec(t, `ALTER TABLE devices DISABLE TRIGGER devices_state`)
	f.exec(t, `ALTER TABLE readings RENAME TO stored`)
	f.exec(t, `CREATE VIEW readings AS SELECT s.device_id, s.bucket_at FROM stored s CROSS JOIN LATERAL generate_series(1, s.co2_ppm::int)`)
}

// storeMany adds a reading that counts n times in the view.
func (f *fixture) storeMany(t *testing.T, device uuid.UUID, at time.Time, n int) {
	t.Helper()
	f.exec(t, `INSERT INTO stored (device_id, bucket_at, co2_ppm) VALUES ($1, $2, $3)`, device, at, n)
}

// The message of 413 states the count, and the longest window that would fit (decision 30 c to f).
func TestExportLimitMessage(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.multiplyReadings(t)
	t.Run("count and window", func(t *testing.T) {
		conformance.Covers(t, "decision 30 a", "decision 30 c", "decision 30 d", "decision 30 e",
			"spec 4, readings.csv, rule 2", "spec 7, status_413", "spec 8, csv_size")
		f.addDevices(t, 40)
		first := start.Add(-88 * day)
		f.exec(t, `INSERT INTO stored (device_id, bucket_at, co2_ppm)
			SELECT d.id, $1::timestamptz + i * INTERVAL '5 minutes', 1000 FROM devices d, generate_series(0, 24) i`, first)
		message := f.requireTooLarge(t, "last=90d")
		require.Contains(t, message, " 1000000 rows")
		require.Equal(t, 240_000, f.requireLongest(t, message, ""))
		require.Equal(t, message, f.requireTooLarge(t, "last=90d&metrics=lux&include=ingested_at"), "columns do not count")
		parquet := f.get(t, "/readings.parquet?last=90d")
		parquet.requireError(t, roomsensor.CodeCSVTooLarge, "")
		require.Equal(t, message, parquet.message(t))
		f.storeMany(t, deviceID, start.Add(-30*time.Minute), 1)
		message = f.requireTooLarge(t, "last=90d")
		require.Contains(t, message, "more than 1,000,000 rows")
		require.Regexp(t, suggested, message)

		// From an instant within a bucket, and of 13 devices, whose rows do not divide the limit.
		var ids []string
		for _, d := range f.items(t, "/devices?limit=14") {
			if id := d["device_id"].(string); id != deviceID.String() && len(ids) < 13 {
				ids = append(ids, id)
			}
		}
		devices := "&devices=" + strings.Join(ids, ",")
		from := roomsensor.FormatTime(first.Add(17*time.Second + time.Microsecond))
		message = f.requireTooLarge(t, "from="+from+devices)
		require.Contains(t, message, " "+strconv.Itoa(13*24*1000)+" rows")
		require.Contains(t, message, "from="+from+"&")
		require.Equal(t, 13*19*1000, f.requireLongest(t, message, devices))
	})
	f.exec(t, `DELETE FROM stored`)
	t.Run("window of 90 days at most", func(t *testing.T) { // An assignment alone may be longer.
		conformance.Covers(t, "decision 30 a", "decision 30 b", "decision 30 c", "decision 30 e")
		began := start.Add(-900 * day)
		for i := range 10 {
			f.storeMany(t, deviceID, began.Add(time.Duration(i)*80*day), 25_000)
		}
		f.addAssignment(t, deviceID, testID(0xa5, 1), began, nil)
		only := "assignment_id=" + testID(0xa5, 1).String()
		require.Equal(t, "250000", f.head(t, "/readings.csv?"+only).header.Get("X-Row-Count"))
		require.Equal(t, "10", f.head(t, "/readings.csv?shape=wide&"+only).header.Get("X-Row-Count"))

		f.storeMany(t, deviceID, start.Add(-time.Hour), 1)
		f.requireTooLarge(t, "shape=wide&"+only)
		message := f.requireTooLarge(t, only)
		require.Contains(t, message, " 250001 rows")
		require.Contains(t, message, "from="+roomsensor.FormatTime(began)+"&to="+roomsensor.FormatTime(began.Add(90*day)))
		require.Equal(t, 50_000, f.requireLongest(t, message, "&"+only))
	})
	f.exec(t, `DELETE FROM stored`)
	t.Run("no window fits", func(t *testing.T) {
		conformance.Covers(t, "decision 30 f")
		f.storeMany(t, deviceID, start.Add(-time.Hour), 250_001)
		for from, fits := range map[time.Duration]bool{0: false, 299 * time.Second: true} {
			message := f.requireTooLarge(t, "from="+before(time.Hour+from))
			require.Contains(t, message, " 250001 rows; at most 250000 are allowed.")
			require.Contains(t, message, "ame fewer devices.")
			require.Equal(t, fits, suggested.MatchString(message), message)
			if fits {
				require.Zero(t, f.requireLongest(t, message, ""))
			}
		}
	})
}

func TestWideDeviceLimit(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 29 h")
	f := setup(t)
	f.addDevices(t, 1000)
	require.Equal(t, 5000, bytes.Count(f.get(t, "/readings.csv?shape=wide").requireOK(t).body, []byte(",")))
	f.addDevice(t, teamID, testID(0xde, 2000), "dev:2000")
	f.requireTooLarge(t, "shape=wide")
	f.get(t, "/readings.csv?shape=wide&devices="+deviceID.String()).requireOK(t)
	f.get(t, "/readings.csv?shape=long").requireOK(t)
}
