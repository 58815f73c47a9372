package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
)

func TestReadingDelete(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.team()
	device := o.device(team, "dev:1", "--name", "Gym")
	o.do("assignment", "start", "Gym", "--type", "athlete", "--label", "Kim Lee", "--at", "2026-01-01T00:00:00Z", "--yes")
	o.exec(`INSERT INTO readings (device_id, bucket_at) SELECT $1, at
		FROM generate_series(TIMESTAMPTZ '2026-01-01Z', '2026-01-04Z', '1 hour') at`, device)
	command := []string{"reading", "delete", "Gym", "--from", "2026-01-02", "--to", "2026-01-04T00:00:00Z", "--reason", "Wet"}

	r := o.run(command...)
	require.Equal(t, cli.ExitUsage, r.code)
	require.Empty(t, r.out)
	for _, says := range []string{
		`This deletes readings permanently:`, `readings: +48\n`, `samples: +0\n`, `first_bucket_at: +2026-01-02T00:00:00Z\n`,
		`last_bucket_at: +2026-01-03T23:00:00Z\n`, `Kim Lee`, `Aggregates and coverage from 2026-01-02 to 2026-01-03 \(UTC\)\.`,
		`Nights of Kim Lee: 3, the first on 2026-01-01\.`, `add --yes to continue`,
	} {
		require.Regexp(t, says, r.err)
	}
	require.NotContains(t, r.err, "The newest reading")

	// As the page says, so that readings of that time become rejects.
	o.do("device", "remove-hardware", "Gym", "--at", "2026-01-02T00:00:00Z")
	o.do("device", "replace-hardware", "Gym", "--hardware-id", "dev:1", "--at", "2026-01-04T00:00:00Z")

	r = o.run(append(command, "--yes")...)
	require.Equal(t, cli.ExitOK, r.code, r.err)
	want := `{"device_id":"` + device + `","team_id":"` + team + `","hardware_id":"dev:1","display_name":"Gym",
		"from":"2026-01-02T00:00:00Z","to":"2026-01-04T00:00:00Z","samples":0,`
	require.JSONEq(t, want+`"readings":48}`, r.out)
	again := o.run(command...)
	require.Equal(t, cli.ExitOK, again.code, "there is nothing to confirm")
	require.JSONEq(t, want+`"readings":0}`, again.out)
	var entries []map[string]any
	for _, e := range o.data("audit", "list", "--team", team) {
		if e["object_kind"] == "readings" {
			entries = append(entries, e)
		}
	}
	require.Len(t, entries, 1)
	require.Equal(t, "Wet", entries[0]["reason"])

	r = o.run("reading", "delete", "Gym", "--from", "2026-01-04", "--to", "2026-01-05", "--reason", "Wet")
	require.Contains(t, r.err, "The newest reading of the device becomes an earlier one, or none.")
	o.fails(cli.ExitUsage, "contain no bucket", "reading", "delete", "Gym", "--from", "2026-01-04T00:01:00Z", "--to", "2026-01-04T00:05:00Z", "--reason", "x")
	o.fails(cli.ExitUsage, "--reason", "reading", "delete", "Gym", "--from", "2026-01-04", "--to", "2026-01-05")
	o.fails(cli.ExitFailure, "There is no device "+unknown, "reading", "delete", unknown, "--from", "2026-01-04", "--to", "2026-01-05", "--reason", "x", "--yes")
}
