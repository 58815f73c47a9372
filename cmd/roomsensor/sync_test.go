package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
	"roomsensor/test/copytest"
)

func TestSync(t *testing.T) {
	t.Parallel()
	o, a := newClient(t)
	a.AddReadings(t, a.AddDevices(t, 2), time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC), 20, time.Hour)
	want := copytest.Table(t, a.SQL, a.Team)
	dir := t.TempDir()
	for target, read := range map[string]func(require.TestingT, string) []string{
		dir + "/2026-11-25T10:00.db": copytest.SQLite, dir + "/copy/": copytest.Parquet,
	} {
		for range 2 {
			r := o.run("sync", target, "--once", "--from", "2026-01-01T00:00:00Z")
			require.Equal(t, cli.ExitOK, r.code, r.err)
			require.Contains(t, r.err, "sync: the copy is up to date")
			require.Contains(t, r.out, `"phase":"following"`)
			require.Equal(t, want, read(t, target))
		}
	}
	o.fails(cli.ExitUsage, "cannot write DuckDB's files", "sync", "readings.duckdb")
	o.fails(cli.ExitUsage, "cannot write DuckDB's files", "sync", "duckdb:readings")
	o.fails(cli.ExitUsage, "names no target", "sync", "readings.txt")
	o.fails(cli.ExitUsage, "names no target", "sync", "sqlite:")
	o.fails(cli.ExitUsage, "from 1 to 8", "sync", "readings.db", "--parallel", "0")
}
