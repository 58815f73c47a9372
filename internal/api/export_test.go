package api_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// fillExport gives the team four devices, two of which have readings: names
// that need care, gaps and nulls.
func (f *fixture) fillExport(t *testing.T) {
	t.Helper()
	for i := 2; i <= 4; i++ {
		f.addDevice(t, teamID, number(0xde, i), fmt.Sprintf("dev:%d", i))
	}
	f.nameDevice(t, deviceID, `=Gym, "A"`)
	f.nameDevice(t, number(0xde, 3), "Attic")
	f.nameDevice(t, number(0xde, 4), "attic!")
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db) VALUES
		($1, '2026-11-20 09:50Z', 612, 21.4, 40.1, 120, 38.2), ($1, '2026-11-20 09:55Z', NULL, -0.5, NULL, 0, NULL)`, deviceID)
	f.addReading(t, number(0xde, 2), start.Add(-10*time.Minute), 400)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at) VALUES ($1, '2026-11-20 09:40Z')`, number(0xde, 2))
}

// Decisions 27 to 29.
func TestExportGolden(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 27.1", "decision 27.2", "decision 27.3", "decision 27.5", "decision 27.7", "decision 28.2", "decision 29.1", "decision 29.4")
	conformance.Covers(t, "spec 4, GET /readings.csv, shape", "spec 4, GET /readings.csv, wide")
	f := setup(t)
	f.fillExport(t)
	all := []string{number(0xde, 4).String(), number(0xde, 2).String()}
	for name, path := range map[string]string{
		"long.csv.golden":          "/readings.csv",
		"long_empty.csv.golden":    "/readings.csv?last=1m",
		"wide.csv.golden":          "/readings.csv?shape=wide",
		"wide_selected.csv.golden": "/readings.csv?shape=wide&devices=" + strings.Join(all, ","),
		"wide_empty.csv.golden":    "/readings.csv?shape=wide&last=1m",
	} {
		got := f.get(t, path)
		requireGolden(t, name, got.body)
		require.Equal(t, http.StatusOK, got.status)
		require.Equal(t, "text/csv; charset=utf-8", got.header.Get("Content-Type"))
		lines := bytes.Count(got.body, []byte("\n"))
		require.Equal(t, strconv.Itoa(lines-1), got.header.Get("X-Row-Count"), name)
		_, err := csv.NewReader(bytes.NewReader(got.body)).ReadAll()
		require.NoError(t, err)
	}
}

// Decision 32.
func TestExportFileName(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 32.3")
	f := setup(t)
	open, closed := number(0xa5, 1), number(0xa5, 2)
	end := start.Add(-10 * time.Hour)
	f.addAssignment(t, deviceID, open, start.Add(-5*time.Hour), nil)
	f.addAssignment(t, deviceID, closed, start.Add(-20*time.Hour), &end)
	for query, want := range map[string]string{
		"":         "20261119T100000Z_20261120T100000Z",
		"last=30m": "20261120T093000Z_20261120T100000Z",
		"from=2026-11-20T01:02:03.999Z&to=2026-11-20T02:00:00Z":    "20261120T010203Z_20261120T020000Z",
		"assignment_id=" + open.String():                           "20261120T050000Z_20261120T100000Z",
		"assignment_id=" + closed.String():                         "20261119T140000Z_20261120T000000Z",
		"last=12h&assignment_id=" + closed.String():                "20261119T220000Z_20261120T000000Z",
		"last=2h&assignment_id=" + open.String():                   "20261120T080000Z_20261120T100000Z",
		"last=1h&assignment_id=" + closed.String():                 "20261120T090000Z_20261120T090000Z",
		"to=0000-01-01T12:00:00Z":                                  "00000101T000000Z_00000101T120000Z",
		"from=9999-12-31T00:00:00Z&to=9999-12-31T23:59:59.999999Z": "99991231T000000Z_99991231T235959Z",
	} {
		got := f.get(t, "/readings.csv?"+query)
		require.Equal(t, fmt.Sprintf(`attachment; filename="readings_%s.csv"`, want), got.header.Get("Content-Disposition"), query)
	}
}

// Decision 31; spec 4, readings.csv, rule 1.
func TestExportSelection(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 31.1", "decision 31.3", "decision 31.4", "decision 29.9")
	conformance.Covers(t, "spec 4, GET /readings.csv, devices", "spec 4, GET /readings.csv, all devices",
		"spec 4, GET /readings.csv, rule 1", "spec 4, GET /readings.csv, rule 1, other", "spec 9, rule 4, filter")
	f := setup(t)
	second, block := number(0xde, 2), number(0xa5, 1)
	f.addDevice(t, teamID, second, "dev:2")
	f.addReading(t, deviceID, start.Add(-time.Hour), 1)
	f.addReading(t, deviceID, start.Add(-3*time.Hour), 3)
	f.addReading(t, second, start.Add(-time.Hour), 2)
	f.addAssignment(t, deviceID, block, start.Add(-2*time.Hour), nil)
	own, other := deviceID.String(), second.String()
	for query, want := range map[string]string{
		"":                                        "3 1 2",
		"devices=" + own:                          "3 1",
		"devices=" + strings.ToUpper(own):         "3 1",
		"devices=" + own + "," + own:              "3 1",
		"devices=" + other + "," + own:            "3 1 2",
		"assignment_id=" + block.String():         "1",
		"last=4h&assignment_id=" + block.String(): "1",
		"assignment_id=" + block.String() + "&devices=" + own:   "1",
		"assignment_id=" + block.String() + "&devices=" + other: "",
		"last=30m&assignment_id=" + block.String():              "",
	} {
		records, err := csv.NewReader(bytes.NewReader(f.get(t, "/readings.csv?"+query).body)).ReadAll()
		require.NoError(t, err)
		var co2 []string
		for _, record := range records[1:] {
			co2 = append(co2, record[3])
		}
		require.Equal(t, want, strings.Join(co2, " "), query)
	}
	f.get(t, "/readings.csv?devices="+own+","+number(9, 9).String()).requireError(t, roomsensor.CodeDeviceNotFound, "devices")
	f.get(t, "/readings.csv?assignment_id="+number(9, 9).String()).requireError(t, roomsensor.CodeAssignmentNotFound, "assignment_id")
	wide := f.get(t, "/readings.csv?shape=wide&assignment_id="+block.String()+"&devices="+other)
	require.Equal(t, "bucket_at\n", string(wide.body), "no device selected")
}

// Decision 26.
func TestExportSecrecy(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 26.2")
	conformance.Covers(t, "spec 5, rule 5, secret")
	f := setup(t)
	for _, got := range []response{
		f.get(t, "/readings.csv"),
		f.get(t, "/readings.csv", withoutKey),
		f.get(t, "/readings.csv?shape=x"),
		f.get(t, "/readings.csv?devices="+number(9, 9).String()),
		f.do(t, http.MethodPost, "/readings.csv", ""),
		f.do(t, http.MethodHead, "/readings.csv", ""),
		f.get(t, "/readings.csv/"),
		f.get(t, "/readings.csv?key=x&key=y", withoutKey),
		f.replica.do(t, http.MethodGet, "/readings.csv?key=x", ""),
		f.get(t, "/%72eadings.csv"),
	} {
		require.Equal(t, "no-store", got.header.Get("Cache-Control"), got.status)
		require.Equal(t, "no-referrer", got.header.Get("Referrer-Policy"), got.status)
	}
}

// expand reads a compressed body.
func expand(t *testing.T, coding string, body io.Reader) ([]byte, error) {
	t.Helper()
	switch coding {
	case "gzip":
		r, err := gzip.NewReader(body)
		if err != nil {
			return nil, fmt.Errorf("beginning to expand: %w", err)
		}
		body = r
	case "zstd":
		r, err := zstd.NewReader(body)
		require.NoError(t, err)
		defer r.Close()
		body = r
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return text, fmt.Errorf("expanding: %w", err)
	}
	return text, nil
}

// Decision 33.
func TestCompression(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 33.1", "decision 33.2", "decision 33.3")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-80*24*time.Hour), 20_000)
	id := deviceID.String()
	for path, compresses := range map[string]bool{
		"/readings.csv?last=90d": true, "/readings.csv?last=90d&shape=wide": true, "/readings.csv": true,
		"/devices": true, "/devices/current": true, "/devices/" + id + "/readings?last=90d&limit=1000": true,
		"/devices/" + id + "/assignments": true, "/devices/" + id: false, "/team": false, "/devices?x=1": false,
	} {
		plain := f.get(t, path)
		for _, coding := range []string{"gzip", "zstd", "br", "gzip;q=0"} {
			got := f.get(t, path, header("Accept-Encoding", coding))
			want := ""
			if compresses && (coding == "gzip" || coding == "zstd") {
				want = coding
			}
			require.Equal(t, want, got.header.Get("Content-Encoding"), "%s %s", path, coding)
			body, err := expand(t, want, bytes.NewReader(got.body))
			require.NoError(t, err)
			if !strings.Contains(path, "limit=") && got.status == http.StatusOK { // A cursor differs each time.
				require.Equal(t, string(plain.body), string(body))
			}
			require.Equal(t, compresses, got.header.Get("Vary") == "Accept-Encoding", path)
		}
		require.Equal(t, compresses, plain.header.Get("Vary") == "Accept-Encoding", "also where it is not compressed")
	}
}

var suggested = regexp.MustCompile(`from=(\S+)&to=(\S+)`)

// Decision 30; spec 4, readings.csv, rule 2.
func TestExportSize(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 30.1", "decision 30.2", "decision 30.3", "decision 30.5")
	conformance.Covers(t, "spec 4, GET /readings.csv, rule 2", "spec 7, status 413", "spec 8, CSV size")
	f := setup(t)
	f.exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(2, 10) i`, teamID)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm)
		SELECT d.id, $1::timestamptz + i * INTERVAL '5 minutes', i FROM devices d, generate_series(0, 24999) i`,
		start.Add(-88*24*time.Hour))
	f.exec(t, "ANALYZE readings")
	full := f.get(t, "/readings.csv?last=90d")
	require.Equal(t, http.StatusOK, full.status, "exactly 250,000 pass")
	require.Equal(t, "250000", full.header.Get("X-Row-Count"))
	require.Equal(t, 250_001, bytes.Count(full.body, []byte("\n")))
	wide := f.do(t, http.MethodHead, "/readings.csv?last=90d&shape=wide", "")
	require.Equal(t, "25000", wide.header.Get("X-Row-Count"))

	f.addReading(t, deviceID, start.Add(-24*time.Hour), 1)
	f.do(t, http.MethodGet, "/readings.csv?last=90d&shape=wide", "").requireError(t, roomsensor.CodeCSVTooLarge, "")
	got := f.get(t, "/readings.csv?last=90d")
	got.requireError(t, roomsensor.CodeCSVTooLarge, "")
	require.Contains(t, string(got.body), " 250001 rows")
	window := suggested.FindSubmatch(got.body)
	require.NotNil(t, window, string(got.body))
	from := "/readings.csv?from=" + url.QueryEscape(string(window[1])) + "&to="
	require.Equal(t, http.StatusOK, f.do(t, http.MethodHead, from+url.QueryEscape(string(window[2])), "").status)
	until, ok := roomsensor.ParseTime(string(window[2]))
	require.True(t, ok)
	longer := url.QueryEscape(roomsensor.FormatTime(until.Add(5*time.Minute + time.Second)))
	f.get(t, from+longer).requireError(t, roomsensor.CodeCSVTooLarge, "")
}

// Decision 29: wide takes at most 1,000 devices.
func TestWideTakesAThousandDevices(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 29.8")
	f := setup(t)
	f.exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(2, 1000) i`, teamID)
	got := f.get(t, "/readings.csv?shape=wide")
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, 5000, bytes.Count(got.body, []byte(",")))
	f.addDevice(t, teamID, number(0xde, 2000), "dev:2000")
	f.get(t, "/readings.csv?shape=wide").requireError(t, roomsensor.CodeCSVTooLarge, "")
	require.Equal(t, http.StatusOK, f.get(t, "/readings.csv?shape=wide&devices="+deviceID.String()).status)
	require.Equal(t, http.StatusOK, f.get(t, "/readings.csv?shape=long").status)
}
