package api_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// TestCSVParameters checks the parameters that /readings.csv has beyond the specification (A6).
func TestCSVParameters(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.addNamedDevices(t)
	t.Run("metadata", f.testCSVMetadata)
	t.Run("metrics", f.testCSVMetrics)
	t.Run("columns", f.testCSVColumns)
	t.Run("include", f.testCSVInclude)
}

// addNamedDevices gives the fixture's team three devices with a reading each: Gym on floor 1 of site north, one without
// a name of site north, and Attic without tags.
func (f *fixture) addNamedDevices(t *testing.T) {
	t.Helper()
	second, third := testID(0xde, 2), testID(0xde, 3)
	f.addDevice(t, teamID, second, "dev:2")
	f.addDevice(t, teamID, third, "dev:3")
	f.nameDevice(t, deviceID, "Gym")
	f.nameDevice(t, third, "Attic")
	f.exec(t, `UPDATE devices SET metadata = '{"site":"north","floor":"1"}' WHERE id = $1`, deviceID)
	f.exec(t, `UPDATE devices SET metadata = '{"site":"north"}' WHERE id = $1`, second)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, ingested_at) VALUES
		($1, '2026-11-20 09:50Z', 1, 21.5, 40, 120, 38.25, '2026-11-20 09:51:07.120003Z'),
		($2, '2026-11-20 09:50Z', 2, NULL, 41, NULL, 39, '2026-11-20 09:55:00Z'),
		($3, '2026-11-20 09:55Z', 3, -0.5, NULL, 0, NULL, '2026-11-20 09:55:00.5Z')`, deviceID, second, third)
	f.addAssignment(t, deviceID, testID(0xa5, 1), start.Add(-day), nil)
}

func (f *fixture) testCSVMetadata(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A6.1", "A0.1")
	own, second, third := deviceID.String(), testID(0xde, 2).String(), testID(0xde, 3).String()
	assigned := "&assignment_id=" + testID(0xa5, 1).String()
	for query, want := range map[string]string{
		"metadata.site=north":                                 "1 2",
		"metadata.site=north&metadata.floor=1":                "1",
		"metadata.site=North":                                 "",
		"metadata.site=":                                      "",
		"metadata.%00=%00":                                    "",
		"metadata.site=north&devices=" + second + "," + third: "2",
		"metadata.floor=1&devices=" + second + "," + third:    "",
		"metadata.floor=1" + assigned:                         "1",
		"metadata.site=south" + assigned:                      "",
		"metadata.site=north&devices=" + own + assigned:       "1",
		"metadata.site=north&devices=" + second + assigned:    "",
	} {
		var co2 []string
		for _, record := range f.get(t, "/readings.csv?"+query).records(t)[1:] {
			co2 = append(co2, record[3])
		}
		require.Equal(t, want, strings.Join(co2, " "), query)
	}
	columns, _ := f.export(t, "?shape=wide&metrics=lux&metadata.site=north")
	require.Equal(t, []string{"bucket_at", "device_de000000.lux", "gym.lux"}, columns, "only devices that match have columns")
	columns, records := f.export(t, "?shape=wide&metadata.site=south")
	require.Equal(t, []string{"bucket_at"}, columns)
	require.Empty(t, records)
	f.get(t, "/readings.csv?metadata.site=south&devices="+unknownID).requireError(t, roomsensor.CodeDeviceNotFound, "devices")
}

func (f *fixture) testCSVMetrics(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A6.2")
	requireGolden(t, "long_metrics.csv.golden", f.get(t, "/readings.csv?metrics=spl_db,temp_c").requireOK(t).body)
	requireGolden(t, "wide_metrics.csv.golden", f.get(t, "/readings.csv?shape=wide&metrics=spl_db,temp_c").requireOK(t).body)
	_, whole := f.export(t, "")
	for _, metrics := range []string{"lux", "co2_ppm,temp_c", "spl_db,lux,humidity_pct,temp_c,co2_ppm"} {
		columns, some := f.export(t, "?metrics="+metrics)
		require.Len(t, some, len(whole))
		require.Len(t, columns, 4+strings.Count(metrics, ",")+1)
		for i, record := range some {
			for _, column := range columns { // valid_mask too.
				require.Equal(t, whole[i][column], record[column], "%s: %s", metrics, column)
			}
		}
		for _, shape := range []string{"long", "wide"} {
			require.Equal(t, f.head(t, "/readings.csv?shape="+shape).header.Get("X-Row-Count"),
				f.head(t, "/readings.csv?shape="+shape+"&metrics="+metrics).header.Get("X-Row-Count"))
		}
	}
	f.get(t, "/readings.csv?metrics=co2").requireInvalid(t, "metrics") // roomsensor.ParseMetrics has the other forms.
}

func (f *fixture) testCSVColumns(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A6.3")
	byID := f.get(t, "/readings.csv?shape=wide&columns=id&metrics=co2_ppm").requireOK(t)
	requireGolden(t, "wide_ids.csv.golden", byID.body)
	require.Equal(t, string(f.get(t, "/readings.csv?shape=wide").body),
		string(f.get(t, "/readings.csv?shape=wide&columns=name").requireOK(t).body), "name is the default")
	for _, query := range []string{
		"shape=wide&columns=", "shape=wide&columns=ID", "shape=wide&columns=device_id", "columns=id", "columns=name",
		"shape=long&columns=id",
	} {
		f.get(t, "/readings.csv?"+query).requireInvalid(t, "columns")
	}
}

func (f *fixture) testCSVInclude(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A6.4", "A18.3")
	for _, query := range []string{"?include=ingested_at", "?shape=long&include=ingested_at"} {
		requireGolden(t, "long_ingested.csv.golden", f.get(t, "/readings.csv"+query).requireOK(t).body)
	}
	columns, _ := f.export(t, "?include=ingested_at&last=1m")
	require.Equal(t, "ingested_at", columns[len(columns)-1], "without rows too")
	f.addAssignment(t, testID(0xde, 3), testID(0xa5, 2), start.Add(-time.Hour), new(start.Add(-5*time.Minute)))
	f.addAssignment(t, testID(0xde, 3), testID(0xa5, 3), start.Add(-5*time.Minute), nil)
	f.exec(t, `UPDATE assignments SET label = 'A, "B"', external_ref = '=crm' WHERE id = $1`, testID(0xa5, 3))
	requireGolden(t, "long_assignment.csv.golden", f.get(t, "/readings.csv?metrics=co2_ppm&include=assignment,ingested_at").requireOK(t).body)
	for _, query := range []string{
		"include=assignment,", "shape=wide&include=assignment", "include=", "include=Ingested_at", "include=measured_at", "include=ingested_at,ingested_at", "shape=wide&include=ingested_at",
	} {
		f.get(t, "/readings.csv?"+query).requireInvalid(t, "include")
	}
	// The time changes with a reading, and not with its device.
	at := time.Date(2026, 11, 20, 9, 59, 59, 999999000, time.UTC)
	f.exec(t, `UPDATE readings SET ingested_at = $1 WHERE co2_ppm = 3`, at)
	_, records := f.export(t, "?include=ingested_at&devices="+testID(0xde, 3).String())
	require.Equal(t, "2026-11-20T09:59:59.999999Z", records[0]["ingested_at"])
}

// TestLocalTime checks the column local_time and the CSV for spreadsheets, over the end of summer time in Berlin.
func TestLocalTime(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A19.1", "A19.2")
	f := setup(t)
	f.nameDevice(t, deviceID, "Gym; A")
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c) VALUES
		($1, '2026-10-25 00:30Z', 600.5, -0.5), ($1, '2026-10-25 01:30Z', 601, NULL)`, deviceID)
	const window = "from=2026-10-24T22:00:00Z&to=2026-10-25T23:00:00Z&metrics=co2_ppm,temp_c"
	for name, path := range map[string]string{
		"long": "/readings.csv?time_zone=Europe/Berlin&", "wide": "/readings.csv?shape=wide&time_zone=Europe/Berlin&excel=true&",
		"comma": "/readings.csv?excel=comma&", "aggregates": "/aggregates.csv?interval=1d&time_zone=Europe/Berlin&excel=comma&",
	} {
		requireGolden(t, "local_"+name+".csv.golden", f.get(t, path+window).requireOK(t).body)
	}
	file := f.get(t, "/readings.parquet?time_zone=Europe/Berlin&"+window).requireOK(t).body
	type row struct {
		BucketAt  int64  `parquet:"bucket_at,timestamp(microsecond)"`
		LocalTime string `parquet:"local_time"`
		DeviceID  string `parquet:"device_id"`
		Name      string `parquet:"display_name,optional"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	first, second := time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC).UnixMicro(), time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC).UnixMicro()
	require.Equal(t, []row{
		{first, "2026-10-25T02:30:00+02:00", deviceID.String(), "Gym; A"},
		{second, "2026-10-25T02:30:00+01:00", deviceID.String(), "Gym; A"},
	}, rows)
	for _, path := range []string{"/readings.csv?", "/readings.parquet?", "/aggregates.csv?interval=1h&"} {
		f.get(t, path+"time_zone=CET1").requireInvalid(t, "time_zone")
	}
	for _, query := range []string{"readings.csv?excel=", "readings.csv?excel=false", "readings.parquet?excel=true"} {
		f.get(t, "/"+query).requireInvalid(t, "excel")
	}
}
