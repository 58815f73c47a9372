package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/client/export"
	"roomsensor/internal/cli"
	"roomsensor/test/apitest"
	"roomsensor/test/conformance"
)

// newClient runs commands for clients against an API of its own. The settings end with line ends, as in secrets that
// were made from files.
func newClient(t *testing.T) (*operator, *apitest.Service) {
	t.Helper()
	a := apitest.Start(t)
	return &operator{t, map[string]string{"ROOMSENSOR_URL": a.URL + "/v1\r\n", "ROOMSENSOR_API_KEY": a.Key + "\n"}}, a
}

func TestGet(t *testing.T) {
	t.Parallel()
	o, a := newClient(t)
	devices := a.AddDevices(t, 2)
	a.AddReadings(t, devices[:1], time.Now().Add(-time.Hour), 10, 5*time.Minute)
	a.Exec(t, `INSERT INTO assignments (device_id, type, label, started_at, external_ref, ended_at) VALUES
		($1, 'athlete', 'Ana', '2024-01-01Z', 'crm-7', '2024-01-02Z'), ($1, 'place', 'Gym', '2024-01-03Z', NULL, NULL)`, devices[0])
	a.Exec(t, `UPDATE devices SET display_name = '=Gym', metadata = '{"floor":"2"}' WHERE id = $1`, devices[1])

	for command, lines := range map[string]int{
		"get devices": 2, "get current": 2, "get devices --metadata floor=2": 1, "get current --metadata floor=2": 1,
		"get devices --metadata floor=3":                                             0,
		"get aggregates dev:1 --from 2026-01-01T00:00:00Z --to 2026-01-02T00:00:00Z": 24,
		"get aggregates dev:1 --interval 1d --time-zone Europe/Berlin --metrics co2_ppm --from 2026-01-01T00:00:00Z --to 2026-01-03T00:00:00Z": 3,
		"get assignments": 1, "get assignments --last 3660d --type athlete": 1, "get assignments --last 1h --label Hall": 0,
		"get assignments --external-ref crm-7": 0, "get assignments --metadata floor=2": 0,
		"get nights": 1, "get nights --night 2024-01-01": 1, "get nights --from-night 2024-01-01 --to-night 2024-01-04": 4,
		"get nights --from-night 2024-01-01 --to-night 2024-01-04 --external-ref crm-7 --metadata floor=1": 0,
		"get coverage": 2, "get coverage --last 2h --metadata floor=2": 1,
		"get gaps dev:2 --last 2h": 1, "get gaps dev:2 --last 2h --min 3h": 0,
		"get readings dev:1 --last 2h": 10, "get readings " + devices[0].String() + " --last 2h": 10,
		"get readings dev:2 --from 2026-01-01 --to 2026-01-02": 0,
	} {
		args := strings.Fields(command)
		require.Len(t, o.data(args...), lines, command)
		csv := o.run(append(args, "--output", "csv")...)
		require.Equal(t, cli.ExitOK, csv.code, csv.err)
		require.Equal(t, lines+1, strings.Count(csv.out, "\n"), csv.out)
		table := o.run(append(args, "--output", "table")...)
		require.Equal(t, cli.ExitOK, table.code, table.err)
		require.Equal(t, max(lines, 1)+1, strings.Count(table.out, "\n"), table.out)
	}
	reading := o.data("get", "readings", "Room 1", "--last", "2h")[9]
	require.Equal(t, []string{"bucket_at", "co2_ppm", "humidity_pct", "ingested_at", "lux", "spl_db", "temp_c"},
		slices.Sorted(maps.Keys(reading)))
	require.Nil(t, reading["humidity_pct"])
	require.Contains(t, o.run("get", "devices", "--output", "csv").out, ",dev:2,'=Gym,")
	require.Contains(t, o.run("get", "current", "--output", "table").out, "Room 1")

	a.Exec(t, `UPDATE devices SET display_name = 'Same'`)
	o.fails(cli.ExitFailure, "The team has 2 devices \"Same\"", "get", "readings", "Same")
	o.fails(cli.ExitFailure, "The team has no device \"Hall\". 'roomsensor", "get", "readings", "Hall")
	o.fails(cli.ExitFailure, "Did you mean \"Same\"?", "get", "readings", "same")
	o.fails(cli.ExitFailure, "device_not_found: ", "get", "readings", unknown)
	o.fails(cli.ExitFailure, "time_range_too_wide: ", "get", "readings", "dev:1", "--last", "91d")
	o.fails(cli.ExitUsage, "--last cannot be combined", "get", "readings", "x", "--last", "1h", "--to", "2026-01-01T00:00:00Z")
	o.fails(cli.ExitUsage, "--night cannot be combined", "get", "nights", "--night", "2026-01-01", "--to-night", "2026-01-01")
	o.fails(cli.ExitUsage, "--to-night needs", "get", "nights", "--to-night", "2026-01-01")
	o.fails(cli.ExitUsage, "is not a date", "get", "nights", "--night", "1.1.2026")
	o.fails(cli.ExitFailure, "time_range_too_wide: ", "get", "nights", "--from-night", "2020-01-01", "--to-night", "2026-01-01")
	require.Regexp(t, `^roomsensor: validation_failed: time_zone must .* \(req_\w+\)\.\n$`,
		o.run("get", "aggregates", "dev:1", "--time-zone", "Berlin").err)
	o.fails(cli.ExitUsage, "--min: \"90s\" is not a length in whole minutes", "get", "gaps", "x", "--min", "90s")
	o.fails(cli.ExitUsage, "for example 90m, 24h or 7d.\nRun 'roomsensor get readings --help' for usage", "get", "readings", "x", "--last", "1w")
	o.fails(cli.ExitUsage, "--from must be earlier than --to", "get", "readings", "x", "--from", "2026-01-02", "--to", "2026-01-02")
	o.fails(cli.ExitUsage, "Run 'roomsensor get readings --help' for usage", "get", "readings")
}

func TestClientErrors(t *testing.T) {
	t.Parallel()
	o, a := newClient(t)
	for want, change := range map[string]map[string]string{
		"--roomsensor-url (ROOMSENSOR_URL) is missing":                    {"ROOMSENSOR_URL": ""},
		"--roomsensor-url (ROOMSENSOR_URL) is not the base URL":           {"ROOMSENSOR_URL": "sensors.example.com"},
		"--roomsensor-api-key (ROOMSENSOR_API_KEY) is missing":            {"ROOMSENSOR_API_KEY": ""},
		"--roomsensor-api-key (ROOMSENSOR_API_KEY) is not a complete API": {"ROOMSENSOR_API_KEY": a.Key[:40]},
	} {
		environment := maps.Clone(o.environment)
		maps.Copy(environment, change)
		broken := &operator{t, environment}
		broken.fails(cli.ExitUsage, want, "get", "devices")
	}
	o.environment["ROOMSENSOR_URL"] = "http://127.0.0.1:1"
	o.fails(cli.ExitFailure, "Check that it runs and that --roomsensor-url (ROOMSENSOR_URL) is right", "get", "changes")
}

func TestExport(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A21.2")
	o, a := newClient(t)
	devices := a.AddDevices(t, 3)
	from := time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)
	a.AddReadings(t, devices, from, 100, 2*24*time.Hour)
	dir := t.TempDir()
	run := func(args ...string) result {
		return o.run(append([]string{"export", "--from", "2025-01-01T00:00:00Z", "--to", "2025-07-20T00:00:00Z"}, args...)...)
	}
	r := run("--output", dir+"/a.csv")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.Contains(t, r.err, "export: 2025-01-01T00:00:00Z to 2025-07-20T00:00:00Z\n")
	var got export.Result
	require.NoError(t, json.Unmarshal([]byte(r.out), &got))
	require.EqualValues(t, 300, got.Rows)
	require.Equal(t, dir+"/a.csv", got.Files[0].Path)
	require.Equal(t, 301, strings.Count(string(readFile(t, dir+"/a.csv")), "\n"))

	require.Equal(t, cli.ExitOK, run("-o", dir+"/b.csv", "--devices", "Room 1", "--devices", devices[1].String()+","+devices[0].String()).code)
	require.Equal(t, 201, strings.Count(string(readFile(t, dir+"/b.csv")), "\n"))
	require.Equal(t, cli.ExitOK, run("-o", dir+"/months", "--by-month").code)
	require.Equal(t, 1+15*3, strings.Count(string(readFile(t, dir+"/months/readings_2025-03.csv")), "\n"))

	check := func(code int) (c export.Comparison) {
		t.Helper()
		r := o.run("export", "check", dir+"/a.csv")
		require.Equal(t, code, r.code, r.err)
		require.NoError(t, json.Unmarshal([]byte(r.out), &c))
		return c
	}
	require.True(t, check(cli.ExitOK).Exact)
	require.Contains(t, run("-o", dir+"/a.csv", "--if-changed").out, `"exact":true`)
	a.AddReadings(t, devices[2:], from.Add(24*time.Hour), 1, time.Hour)
	require.Equal(t, []export.Day{{DeviceID: devices[2], Day: "2025-01-02", Readings: 1}}, check(3).Days)
	r = run("-o", dir+"/a.csv", "--if-changed")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.Contains(t, r.err, "changed: 2025-01-02, "+devices[2].String()+", readings: 1\n")
	require.Equal(t, 302, strings.Count(string(readFile(t, dir+"/a.csv")), "\n"))
	require.True(t, check(cli.ExitOK).Exact)
	o.fails(cli.ExitFailure, "Export the file again", "export", "check", dir+"/none.csv")
	o.fails(cli.ExitUsage, "a fixed period", "export", "-o", dir+"/a.csv", "--last", "1d", "--if-changed")

	require.Equal(t, cli.ExitOK, run("-o", dir+"/a.parquet").code)
	require.True(t, bytes.HasPrefix(readFile(t, dir+"/a.parquet"), []byte("PAR1")))

	r = run("-o", "-")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.Equal(t, string(readFile(t, dir+"/a.csv")), r.out)

	for want, args := range map[string][]string{
		"exists. Choose another output, or add --overwrite.": {"-o", dir + "/a.csv"},
		"There is no directory " + dir + "/nope. Create it":  {"-o", dir + "/nope/a.csv"},
		"There is no directory " + dir + "/none. Create it":  {"-o", dir + "/none/months/", "--by-month"},
		"The team has no device \"Attic\"":                   {"-o", dir + "/c.csv", "--devices", "Attic"},
	} {
		r := run(args...)
		require.Equal(t, cli.ExitFailure, r.code, r.err)
		require.Contains(t, r.err, want)
	}
	o.fails(cli.ExitUsage, "Specify the period", "export", "-o", "x.csv")
	o.fails(cli.ExitUsage, "--last cannot be combined", "export", "-o", "x.csv", "--last", "1d", "--from", "2026-01-01T00:00:00Z")
	o.fails(cli.ExitUsage, "does not end in .csv or .parquet", "export", "-o", "x.txt", "--last", "1d")
	o.fails(cli.ExitUsage, "needs --shape wide", "export", "-o", "x.csv", "--last", "1d", "--columns", "id")
	o.fails(cli.ExitUsage, "writes one CSV to standard output", "export", "-o", "-", "--last", "1d", "--by-month")
	o.fails(cli.ExitUsage, "writes one CSV to standard output", "export", "-o", "-", "--last", "1d", "--format", "parquet")
	o.fails(cli.ExitUsage, "Parquet has the long shape", "export", "-o", "x.parquet", "--last", "1d", "--shape", "wide")
	o.fails(cli.ExitUsage, "is not a metric", "export", "-o", "x.csv", "--last", "1d", "--metrics", "co2")
	o.fails(cli.ExitUsage, "from 1 to 8", "export", "-o", "x.csv", "--last", "1d", "--parallel", "9")
	o.fails(cli.ExitUsage, "--output", "export", "--last", "1d")
}
