package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

func TestImport(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A15.2", "A15.3")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	_, key, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	o := &operator{t, map[string]string{"INGEST_URL": "http://127.0.0.1:1"}}
	const header = "bucket_at,device_id,co2_ppm\n"
	good := file("good.csv", header+"2026-01-01T00:00:00Z,a,612\n2026-01-02T00:00:00Z,b,613\n2026-01-03T00:00:00Z,a,\n")
	bad := file("bad.csv", header+"2020-01-01T00:00:00Z,a,612\nx,a,1\n2026-01-01T00:00:00Z,c,1\n")
	units := file("units.csv", "device_id,hardware_id\na,dev:1\nb,dev:2\n")

	shown := func(r result) (got map[string]any) {
		require.NoError(t, json.Unmarshal([]byte(r.out), &got), r.err)
		return got
	}
	got := o.do("import", good, "--units", units, "--dry-run")
	require.Equal(t, map[string]any{
		"readings": 2.0, "sent": 0.0, "lines_without_values": 1.0, "bad_lines": 0.0, "from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z",
		"first_bad_lines": []any{}, "units": []any{
			map[string]any{"hardware_id": "dev:1", "readings": 1.0, "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"},
			map[string]any{"hardware_id": "dev:2", "readings": 1.0, "from": "2026-01-02T00:00:00Z", "to": "2026-01-02T00:00:00Z"},
		},
	}, got)
	r := execute(t, o.environment, strings.NewReader(header+"2026-01-01T00:00:00Z,a,612\n"), "import", "-", good, "--units", units, "--dry-run")
	require.EqualValues(t, 3, shown(r)["readings"])

	r = o.run("import", good, bad, "--units", units, "--dry-run")
	require.Equal(t, cli.ExitFailure, r.code)
	require.Equal(t, []any{
		map[string]any{"file": bad, "line": 3.0, "reason": `has "x", which is not a time in this format`},
		map[string]any{"file": bad, "line": 4.0, "reason": `has the unit "c", which --units does not have`},
	}, shown(r)["first_bad_lines"])
	require.Contains(t, r.err, bad+", line 3 has \"x\", which is not a time in this format\n")
	require.Contains(t, r.err, "these are more than 120 weeks")
	require.Contains(t, r.err, "Lines that cannot be read: 2. Nothing was sent.")
	skipped := filepath.Join(dir, "skipped.csv")
	r = o.run("import", good, bad, "--units", units, "--dry-run", "--skip-bad", skipped)
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.EqualValues(t, 3, shown(r)["readings"])
	require.Equal(t, header+"x,a,1\n2026-01-01T00:00:00Z,c,1\n", string(readFile(t, skipped)))

	fails := func(code int, want string, args ...string) {
		t.Helper()
		r := o.run(append([]string{"import"}, args...)...)
		require.Equal(t, code, r.code, r.err)
		require.Contains(t, r.err, want)
	}
	fails(cli.ExitUsage, "--ingest-key (INGEST_KEY) is missing", good, "--units", units)
	fails(cli.ExitUsage, "is not a complete ingest key", good, "--units", units, "--ingest-key", "rsi_x")
	o.environment["INGEST_KEY"] = key
	fails(cli.ExitUsage, "give --units or --device", good)
	fails(cli.ExitUsage, "give --unit or --device", good, "--time", "t", "--metric", "lux=l")
	fails(cli.ExitUsage, "need --time", good, "--unit", "a")
	fails(cli.ExitUsage, "--time needs --metric", good, "--time", "t", "--unit", "a")
	fails(cli.ExitUsage, "cannot be combined with --unit and --units", good, "--units", units, "--device", "dev:1")
	fails(cli.ExitUsage, "the time has the format local without", good, "--time", "t", "--metric", "lux=l", "--unit", "u", "--time-format", "local")
	fails(cli.ExitUsage, `--metric has "l"`, good, "--time", "t", "--metric", "l", "--unit", "u")
	fails(cli.ExitUsage, "--units cannot be read", good, "--units", dir+"/none")
	fails(cli.ExitUsage, "The file cannot be read", dir+"/none", "--units", units)
	fails(cli.ExitUsage, "is one of the files", good, "--units", units, "--dry-run", "--skip-bad", good)
	fails(cli.ExitUsage, "cannot be written", good, "--units", units, "--dry-run", "--skip-bad", dir)
	fails(cli.ExitFailure, `no column "hardware_id"`, good, "--units", good)
	fails(cli.ExitFailure, `no column "t"`, good, "--time", "t", "--metric", "lux=l", "--unit", "u", "--dry-run")
	fails(cli.ExitFailure, dir+" can be read only once, and cannot be copied", dir, "--units", units, "--dry-run")
	fails(cli.ExitFailure, "Nothing was sent", file("nothing.csv", header+"x,a,1\n"), "--units", units, "--skip-bad", skipped)
	fails(cli.ExitFailure, "Check that it runs and that --ingest-url (INGEST_URL) is right", good, "--units", units)
}
