package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/internal/cli"
	"roomsensor/test/conformance"
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
	require.Contains(t, o.run("sync", dir+"/2026-11-25T10:00.db", "--once").out, `"lists_at":"2`)
	o.fails(cli.ExitUsage, "cannot write DuckDB's files", "sync", "readings.duckdb")
	o.fails(cli.ExitUsage, "cannot write DuckDB's files", "sync", "duckdb:readings")
	o.fails(cli.ExitUsage, "names no target", "sync", "readings.txt")
	o.fails(cli.ExitUsage, "names no target", "sync", "sqlite:")
	o.fails(cli.ExitUsage, "from 1 to 8", "sync", "readings.db", "--parallel", "0")
}

// The statement of the recipe finds the nights of the athletes in a copy, with the numbers of GET /nights: also of a night
// in which athletes moved, within the first second of a reading.
func TestSyncNights(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A24.3")
	o, a := newClient(t)
	rooms := a.AddDevices(t, 2)
	a.AddReadings(t, rooms, time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC), 3*24*12, 5*time.Minute)
	a.Exec(t, `UPDATE teams SET time_zone = 'Africa/Lagos'`) // An hour before UTC, without summer time.
	a.Exec(t, `INSERT INTO assignments (device_id, type, label, external_ref, started_at, ended_at) VALUES
		($1, 'athlete', 'Kim', 'crm-7', '2026-01-01 21:30Z', '2026-01-03 02:00:00.25Z'),
		($1, 'athlete', 'Ana', NULL, '2026-01-03 02:00:00.25Z', NULL),
		($2, 'place', 'Hall', NULL, '2026-01-01Z', '2026-01-03 02:00:00.25Z'),
		($2, 'athlete', 'Kim Lee', 'crm-7', '2026-01-03 02:00:00.25Z', NULL)`, rooms[0], rooms[1])
	path := t.TempDir() + "/readings.db"
	require.Equal(t, cli.ExitOK, o.run("sync", path, "--once").code)

	type night struct {
		co2      float64
		readings int
	}
	want := map[string]night{}
	api, err := client.New(a.URL, a.Key)
	require.NoError(t, err)
	january := func(day int) time.Time { return time.Date(2026, time.January, day, 0, 0, 0, 0, time.UTC) }
	for n, err := range api.Nights(t.Context(), client.NightQuery{From: january(1), To: january(4)}) {
		require.NoError(t, err)
		if n.Type == client.AssignmentTypeAthlete && n.Present > 0 {
			key := n.Night + " " + n.Label
			if n.ExternalRef != nil {
				key = n.Night + " " + *n.ExternalRef
			}
			sum := want[key]
			all := sum.readings + n.Present
			want[key] = night{(sum.co2*float64(sum.readings) + *n.CO2PPM.Mean*float64(n.Present)) / float64(all), all}
		}
	}
	require.Len(t, want, 5)

	_, statement, found := strings.Cut(string(readFile(t, "../../docs/guides/recipes.md")), "\n## Nights per athlete in SQL\n")
	require.True(t, found)
	_, statement, _ = strings.Cut(statement, "```sql\n")
	statement, _, _ = strings.Cut(statement, "```")
	statement = strings.ReplaceAll(statement, "'localtime'", "'+1 hours'") // The tests run in any time zone.
	db := copytest.OpenSQLite(t, path)
	defer func() { require.NoError(t, db.Close()) }()
	rows, err := db.QueryContext(t.Context(), statement)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	count := 0
	for ; rows.Next(); count++ {
		var date, athlete string
		var got night
		var temp float64
		require.NoError(t, rows.Scan(&date, &athlete, &got.co2, &temp, &got.readings))
		require.Equal(t, want[date+" "+athlete].readings, got.readings, "%s %s", date, athlete)
		require.InEpsilon(t, want[date+" "+athlete].co2, got.co2, 1e-6, "%s %s", date, athlete)
	}
	require.NoError(t, rows.Err())
	require.Len(t, want, count, fmt.Sprint(want))
}
