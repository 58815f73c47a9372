package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// TestImport imports an export of the service and the file of a logger. Neither an interruption nor a repetition changes
// the rows. What could not be stored prevents the import.
func TestImport(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A15.1", "A15.2", "A15.3")
	e := newService(t)
	e.receiver = e.start("ingest", "--no-worker")
	e.settings["INGEST_URL"], e.settings["INGEST_KEY"] = e.receiver.url, e.ingestKey
	from := time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
	window := client.Between(from, from.AddDate(0, 0, 7))
	hall, gym := e.newDevice("dev:1", "--name", "=Hall"), e.newDevice("dev:2", "--name", "Gym, north")
	e.uploadSeries("dev:1", "", from, 700)
	e.uploadSeries("dev:2", "", from.Add(time.Hour), 500)
	exported := e.api().csv(window, hall, gym)
	require.Equal(t, 1201, strings.Count(exported, "\n"))
	e.exec(`DELETE FROM readings`)

	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	units := file("units.csv", "display_name,hardware_id\n=Hall,dev:1\n\"Gym, north\",dev:2\n")
	whole := file("export.csv", exported)
	part := file("part.csv", strings.Join(strings.SplitAfter(exported, "\n")[:300], ""))
	for name, readings := range map[string]float64{part: 299, whole: 1200} {
		for range 2 {
			require.InDelta(t, readings, e.command("import", name, "--units", units)["sent"], 0)
		}
	}
	e.settle()
	require.Equal(t, exported, e.api().csv(window, hall, gym))

	e.newDevice("dev:3")
	logger := []string{
		file("logger.csv", "\ufeffZeit;Temp;CO2\r\n2026-03-29 01:59;70,5;612\r\n2026-03-29 03:00;71;\r\n"),
		"--device", "dev:3", "--time", "Zeit", "--time-format", "local", "--time-zone", "Europe/Berlin", "--metric", "co2_ppm=CO2",
		"--metric", "temp_c=Temp*0.5-10",
	}
	e.command(append([]string{"import"}, logger...)...)
	e.settle()
	day := time.Date(2026, time.March, 29, 0, 0, 0, 0, time.UTC)
	rows := strings.Split(e.api().csv(client.Between(day, day.AddDate(0, 0, 1))), "\n")
	require.Contains(t, rows[1], "2026-03-29T00:55:00Z")
	require.Contains(t, rows[1], ",612,25.25,,,,3")
	require.Contains(t, rows[2], "2026-03-29T01:00:00Z")

	before := e.storedReadings()
	fails := func(want string, args ...string) {
		t.Helper()
		r := e.run(nil, append([]string{"import"}, args...)...)
		require.Equal(t, 1, r.code, r.stderr)
		require.Contains(t, r.stderr, want)
		require.Empty(t, r.out)
	}
	fails("Lines that cannot be read: 1. Nothing was sent.", file("bad.csv", exported+"x\n"), "--units", units)
	fails("unit dev:9: unknown_unit: ", whole, "--units", file("wrong.csv", "display_name,hardware_id\n=Hall,dev:1\n\"Gym, north\",dev:9\n"))
	_, unknown, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	fails("ingest_key_invalid: ", whole, "--units", units, "--ingest-key", unknown)
	fails("is the address of the receiver, and not of the API", whole, "--units", units, "--ingest-url", e.apis[0].url)
	e.settle()
	require.Equal(t, before, e.storedReadings())
	require.Empty(t, e.list("rejects", "list"))
	r := e.run(nil, "import", filepath.Join(dir, "bad.csv"), "--units", units, "--skip-bad", filepath.Join(dir, "skipped.csv"))
	require.Zero(t, r.code, r.stderr)
	skipped, err := os.ReadFile(filepath.Join(dir, "skipped.csv"))
	require.NoError(t, err)
	require.Equal(t, exported[:strings.Index(exported, "\n")+1]+"x\n", string(skipped))
}
