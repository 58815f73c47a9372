package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/export"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// TestReadingsCSV compares both shapes with golden files: names that need quoting, gaps and nulls.
func TestReadingsCSV(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 27 a", "decision 27 b", "decision 27 c", "decision 27 e", "decision 27 g", "decision 28 a", "decision 28 b",
		"decision 29 a", "decision 29 d", "spec 4, readings.csv, shape", "spec 4, readings.csv, wide",
		"spec 4, readings.csv, long", "spec 2, csv_row, columns", "spec 2, csv_row, valid_mask",
		"spec 1, conventions, rule 2")
	f := setup(t)
	for i := 2; i <= 4; i++ {
		f.addDevice(t, teamID, testID(0xde, i), fmt.Sprintf("dev:%d", i))
	}
	f.nameDevice(t, deviceID, `=Gym, "A"`)
	f.nameDevice(t, testID(0xde, 3), "Attic")
	f.nameDevice(t, testID(0xde, 4), "attic!")
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db) VALUES
		($1, '2026-11-20 09:50Z', 612, 21.4, 40.1, 120, 38.2), ($1, '2026-11-20 09:55Z', NULL, -0.5, NULL, 0, NULL)`, deviceID)
	f.addReading(t, testID(0xde, 2), start.Add(-10*time.Minute), 400)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at) VALUES ($1, '2026-11-20 09:40Z')`, testID(0xde, 2))
	for name, path := range map[string]string{
		"long.csv.golden":          "/readings.csv",
		"long_empty.csv.golden":    "/readings.csv?last=1m",
		"wide.csv.golden":          "/readings.csv?shape=wide",
		"wide_selected.csv.golden": "/readings.csv?shape=wide&devices=" + testID(0xde, 4).String() + "," + testID(0xde, 2).String(),
		"wide_empty.csv.golden":    "/readings.csv?shape=wide&last=1m",
	} {
		got := f.get(t, path).requireOK(t)
		requireGolden(t, name, got.body)
		require.Equal(t, "text/csv; charset=utf-8", got.header.Get("Content-Type"))
		require.Equal(t, strconv.Itoa(len(got.records(t))-1), got.header.Get("X-Row-Count"), name)
	}
	require.Equal(t, string(f.get(t, "/readings.csv").body), string(f.get(t, "/readings.csv?shape=long").body), "long is the default")
	for bit, metric := range []string{"co2_ppm", "temp_c", "humidity_pct", "lux", "spl_db"} {
		f.exec(t, `DELETE FROM readings`)
		f.exec(t, `INSERT INTO readings (device_id, bucket_at, `+metric+`) VALUES ($1, '2026-11-20 09:50Z', 0)`, deviceID)
		require.Equal(t, strconv.Itoa(1<<bit), f.get(t, "/readings.csv").records(t)[1][8], metric)
	}
	f.exec(t, `DELETE FROM devices`)
	require.Equal(t, "bucket_at\n", string(f.get(t, "/readings.csv?shape=wide").body))
	require.Equal(t, "bucket_at,device_id,display_name,co2_ppm,temp_c,humidity_pct,lux,spl_db,valid_mask\n",
		string(f.get(t, "/readings.csv").body))
}

// record is a line of a CSV body, by column.
type record map[string]string

// export reads an export and checks what both shapes have in common.
func (f *fixture) export(t *testing.T, query string) (columns []string, records []record) {
	t.Helper()
	got := f.get(t, "/readings.csv"+query).requireOK(t)
	require.True(t, utf8.Valid(got.body))
	require.False(t, bytes.HasPrefix(got.body, []byte("\ufeff")), "no BOM")
	require.True(t, bytes.HasSuffix(got.body, []byte("\n")))
	rows := got.records(t)
	for _, row := range rows[1:] {
		r := record{}
		for i, cell := range row {
			r[rows[0][i]] = cell
		}
		records = append(records, r)
	}
	return rows[0], records
}

// Every cell equals the value in JSON; null is an empty cell.
func TestCSVValues(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 27 d", "decision 27 e", "decision 27 f")
	f := setup(t)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db) VALUES
		($1, '2026-11-20 09:00Z', 612, 21.4, 40.1, 120, 38.2), ($1, '2026-11-20 09:05Z', 1e-45, 3.4028235e38, -0, 0, NULL),
		($1, '2026-11-20 09:10Z', 'NaN', 'Infinity', '-Infinity', 16777216, 0.1), ($1, '2026-11-20 09:15Z', 1e20, 1e-20, 123456.79, 99999.99, 1),
		($1, '2026-11-20 09:20Z', NULL, NULL, NULL, NULL, NULL)`, deviceID)
	_, long := f.export(t, "")
	_, wide := f.export(t, "?shape=wide")
	page := decode[list[map[string]json.RawMessage]](t, f.get(t, readingsPath)).Data
	require.Len(t, page, 5)
	for i, r := range long {
		for name, token := range page[len(page)-1-i] {
			if name == "ingested_at" {
				continue
			}
			cell := strings.Replace(strings.Trim(string(token), `"`), "null", "", 1)
			require.Equal(t, cell, r[name], name)
			if name != "bucket_at" {
				name = "device_de000000." + name
			}
			require.Equal(t, cell, wide[i][name], name)
		}
	}
}

// devices and assignment_id select readings (decision 31; specification, part 4, rule 1 of the export).
func TestCSVSelection(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 31 a", "decision 31 c", "decision 31 d", "decision 29 i")
	conformance.Covers(t, "spec 4, readings.csv, devices", "spec 4, readings.csv, all_devices",
		"spec 4, readings.csv, rule 1, filter", "spec 4, readings.csv, rule 1, other", "spec 9, rule 4, filter")
	f := setup(t)
	f.addDevice(t, teamID, testID(0xde, 2), "dev:2")
	f.addReading(t, deviceID, start.Add(-time.Hour), 1)
	f.addReading(t, deviceID, start.Add(-3*time.Hour), 3)
	f.addReading(t, testID(0xde, 2), start.Add(-time.Hour), 2)
	f.addAssignment(t, deviceID, testID(0xa5, 1), start.Add(-2*time.Hour), nil)
	own, other, assigned := deviceID.String(), testID(0xde, 2).String(), "assignment_id="+testID(0xa5, 1).String()
	for query, want := range map[string]string{
		"":                                "3 1 2",
		"devices=" + own:                  "3 1",
		"devices=" + strings.ToUpper(own): "3 1",
		"devices=" + own + "," + own:      "3 1",
		"devices=" + other + "," + own:    "3 1 2",
		assigned:                          "1",
		"last=4h&" + assigned:             "1",
		"last=30m&" + assigned:            "",
		assigned + "&devices=" + own:      "1",
		assigned + "&devices=" + other + "," + own:                  "1",
		assigned + "&devices=" + strings.Repeat(own+",", 999) + own: "1",
		assigned + "&devices=" + other:                              "",
		assigned + "&devices=" + other + "," + other:                "",
	} {
		var co2 []string
		for _, record := range f.get(t, "/readings.csv?"+query).records(t)[1:] {
			co2 = append(co2, record[3])
		}
		require.Equal(t, want, strings.Join(co2, " "), query)
	}
	wide := f.get(t, "/readings.csv?shape=wide&"+assigned+"&devices="+other)
	require.Equal(t, "bucket_at\n", string(wide.body), "no device is selected")
	require.Equal(t, "1", f.head(t, "/readings.csv?shape=wide&"+assigned).header.Get("X-Row-Count"))
	for query, number := range map[string]int{
		"devices=" + own + "," + unknownID: 2, assigned + "&devices=" + unknownID: 1,
		"shape=wide&last=1m&devices=" + unknownID: 1,
	} {
		got := f.get(t, "/readings.csv?"+query)
		got.requireError(t, roomsensor.CodeDeviceNotFound, "devices")
		require.Contains(t, got.message(t), fmt.Sprintf("Number %d of the ids", number))
	}
	f.get(t, "/readings.csv?assignment_id="+unknownID).requireError(t, roomsensor.CodeAssignmentNotFound, "assignment_id")
}

func TestCSVFileName(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 32 c")
	f := setup(t)
	open, closed := testID(0xa5, 1), testID(0xa5, 2)
	f.addAssignment(t, deviceID, open, start.Add(-5*time.Hour), nil)
	f.addAssignment(t, deviceID, closed, start.Add(-20*time.Hour), new(start.Add(-10*time.Hour)))
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

// failingExport is the store, but no export opens.
type failingExport struct {
	api.Backend
	err error
}

func (f *failingExport) OpenExport(context.Context, uuid.UUID, roomsensor.ExportQuery) (export.Readings, error) {
	return nil, f.err
}

// Every response under the path of an export forbids to store it and to send its URL as referrer, because the URL may
// hold a key.
func TestCSVHeaders(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 25 f", "decision 26 b", "spec 5, rule 5, secret", "A0.2")
	f := setup(t)
	failed := f.serve(t, &failingExport{f.store, errDatabaseLost}, nil)
	unavailable := f.serve(t, &failingExport{f.store, roomsensor.CodeOverloaded.New()}, nil)
	f.addReading(t, deviceID, start.Add(-time.Hour), 1)
	f.addDevices(t, 1001)
	const path, parquet = "/v1/readings.csv", "/v1/readings.parquet"
	key := "?key=" + f.readKey
	for name, tc := range map[string]struct {
		status       int
		on           *replica
		method, path string
	}{
		"long":               {200, f.replica, "GET", path + key},
		"HEAD":               {200, f.replica, "HEAD", path + key},
		"encoded path":       {200, f.replica, "GET", "/v1/%72eadings%2ecsv" + key},
		"parameter":          {400, f.replica, "GET", path + key + "&shape=tall"},
		"malformed query":    {400, f.replica, "GET", path + key + "&from=%zz"},
		"no key":             {401, f.replica, "GET", path},
		"two keys":           {401, f.replica, "GET", path + "?key=x&key=y"},
		"expired key":        {401, f.replica, "GET", path + "?key=" + f.expiredKey(t)},
		"unknown device":     {404, f.replica, "GET", path + key + "&devices=" + unknownID},
		"unknown assignment": {404, f.replica, "HEAD", path + key + "&assignment_id=" + unknownID},
		"unknown route":      {404, f.replica, "GET", path + "/x" + key},
		"method":             {405, f.replica, "POST", path + key},
		"OPTIONS":            {405, f.replica, "OPTIONS", path + key},
		"too large":          {413, f.replica, "GET", path + key + "&shape=wide"},
		"rate limit":         {429, f.replica, "GET", path + "?key=" + f.limitedKey(t, roomsensor.ScopeRead)},
		"failure":            {500, failed, "GET", path + key},
		"overload":           {503, unavailable, "GET", path + key},
		"Parquet":            {200, f.replica, "GET", parquet + key},
		"Parquet, HEAD":      {200, f.replica, "HEAD", parquet + key},
		"Parquet, parameter": {400, f.replica, "GET", parquet + key + "&shape=long"},
		"Parquet, no key":    {401, f.replica, "GET", parquet},
		"Parquet, failure":   {500, failed, "GET", parquet + key},
	} {
		got := tc.on.do(t, tc.method, tc.path, "")
		require.Equal(t, tc.status, got.status, "%s: %s", name, got.body)
		require.Equal(t, []string{"no-store"}, got.header.Values("Cache-Control"), name)
		require.Equal(t, []string{"no-referrer"}, got.header.Values("Referrer-Policy"), name)
		authenticated := tc.status != 401 && tc.status != 405 && name != "unknown route"
		require.Equal(t, authenticated, got.header.Get("RateLimit-Limit") != "", name)
	}
}

// growing is a backend whose readings grow between the parts of an export.
type growing struct {
	api.Backend
	grow func()
}

func (g *growing) OpenExport(ctx context.Context, team uuid.UUID, q roomsensor.ExportQuery) (export.Readings, error) {
	export, err := g.Backend.OpenExport(ctx, team, q)
	g.grow()
	return &growingExport{export, g.grow}, err
}

type growingExport struct {
	export.Readings
	grow func()
}

func (g *growingExport) Lines() int {
	defer g.grow()
	return g.Readings.Lines()
}

func (g *growingExport) Each(ctx context.Context, f func(*roomsensor.ExportRow) error) error {
	return g.Readings.Each(ctx, func(row *roomsensor.ExportRow) error { g.grow(); return f(row) })
}

// The count and the rows are of one snapshot: what arrives during an export is in neither.
func TestCSVSnapshot(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 32 b", "decision 32 e")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-20*time.Hour), 50)
	n := 0
	grow := func() {
		f.addReading(t, deviceID, start.Add(-15*time.Hour+time.Duration(n)*5*time.Minute), 1)
		f.exec(t, "UPDATE readings SET co2_ppm = co2_ppm + 1")
		n++
	}
	growing := f.serve(t, &growing{f.store, grow}, nil)
	for _, path := range []string{"/readings.csv?shape=long", "/readings.csv?shape=wide", "/readings.parquet"} {
		before := f.get(t, path)
		got := growing.get(t, path, f.key)
		require.Equal(t, before.header.Get("X-Row-Count"), got.header.Get("X-Row-Count"))
		require.Equal(t, string(before.body), string(got.body))
	}
	require.Greater(t, n, 100)
}
