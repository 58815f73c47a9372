package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
)

func TestSetRetention(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.id("id", "team", "create", "--name", "Riverside")
	device, other := o.device(team, "dev:1", "--name", "Gym"), o.device(team, "dev:2", "--name", "Hall")
	o.exec(`INSERT INTO readings (device_id, bucket_at) SELECT d, at
		FROM unnest(ARRAY[$1, $2]::uuid[]) d, generate_series(TIMESTAMPTZ '2024-01-01Z', '2024-01-02Z', '1 hour') at`, device, other)
	keepDays := func(command, name string) any { return o.do(command, "show", name)["keep_days"] }

	r := o.run("device", "set-retention", "Gym", "90d")
	require.Equal(t, cli.ExitUsage, r.code)
	require.Empty(t, r.out)
	require.Regexp(t, `(?s)This deletes these readings permanently, and each later one at this age:.*keep_days: +90\n`+
		`deleted_before: +\d{4}-\d\d-\d\dT00:00:00Z\ndevices: +1\nreadings: +25\nsamples: +0\n.*add --yes to continue`, r.err)
	require.Nil(t, keepDays("device", "Gym"), "nothing changes without a confirmation")
	require.Equal(t, cli.ExitOK, o.run("device", "set-retention", "Gym", "90d", "--yes").code)
	require.InDelta(t, 90, keepDays("device", "Gym"), 0)
	listed := []any{}
	for _, d := range o.data("device", "list", "--team", team) {
		listed = append(listed, d["keep_days"])
	}
	require.ElementsMatch(t, []any{90.0, nil}, listed)

	r = o.run("team", "set-retention", "Riverside", "400d")
	require.Equal(t, cli.ExitUsage, r.code)
	require.Regexp(t, `keep_days: +400\n.*\ndevices: +1\nreadings: +25\n`, r.err, "without the device that has its own")
	r = o.run("team", "set-retention", "Riverside", "400d", "--yes")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.Contains(t, r.out, `"keep_days":400`)
	require.Equal(t, cli.ExitUsage, o.run("device", "set-retention", "Gym", "none").code, "that of the team applies then")
	require.Equal(t, cli.ExitOK, o.run("device", "set-retention", "Gym", "none", "--yes").code)
	require.Nil(t, keepDays("device", "Gym"))
	o.do("team", "set-retention", "Riverside", "none")
	require.Nil(t, keepDays("team", "Riverside"))

	var changes []any
	for _, e := range o.data("audit", "list", "--team", team) {
		if after, ok := e["after"].(map[string]any); ok && e["action"] == "change" {
			changes = append(changes, e["object_name"], after["keep_days"])
		}
	}
	require.Equal(t, []any{"Riverside", nil, "Gym", nil, "Riverside", 400.0, "Gym", 90.0}, changes)

	for _, wrong := range []string{"0d", "90", "36h", "never", "36501d", "-1d"} {
		o.fails(cli.ExitUsage, "is not a number of whole days", "team", "set-retention", "Riverside", "--", wrong)
	}
	o.fails(cli.ExitFailure, "There is no team "+unknown, "team", "set-retention", unknown, "none")
	o.fails(cli.ExitFailure, "There is no device "+unknown, "device", "set-retention", unknown, "90d", "--yes")
}
