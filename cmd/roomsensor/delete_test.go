package main

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
	"roomsensor/internal/roomsensor"
)

// exec runs a statement in the database.
func (o *operator) exec(sql string, args ...any) {
	o.t.Helper()
	conn, err := pgx.Connect(o.t.Context(), o.environment["DATABASE_URL"])
	require.NoError(o.t, err)
	_, err = conn.Exec(o.t.Context(), sql, args...)
	require.NoError(o.t, err)
	require.NoError(o.t, conn.Close(o.t.Context()))
}

func TestDeviceDelete(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.team()
	device := o.device(team, "dev:1", "--name", "Gym")
	kept := o.device(team, "dev:2")
	o.exec(`INSERT INTO readings (device_id, bucket_at) SELECT $1, at FROM generate_series(TIMESTAMPTZ '2026-01-01Z', '2026-01-01 01:00Z', '5 minutes') at`, device)
	o.do("assignment", "start", "Gym", "--type", "place", "--label", "x")

	r := o.run("device", "delete", "Gym")
	require.Equal(t, cli.ExitUsage, r.code)
	require.Empty(t, r.out)
	require.Regexp(t, `(?s)This deletes the device.*device_id: +`+device+`.*readings: +13\nassignments: +1\ninstallations: +1\n.*add --yes to continue`, r.err)
	require.Len(t, o.data("device", "list", "--team", team), 2, "nothing is deleted without a confirmation")

	r = o.run("device", "delete", "Gym", "--yes")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.JSONEq(t, `{"device_id":"`+device+`","team_id":"`+team+`","hardware_id":"dev:1","display_name":"Gym",
		"readings":13,"assignments":1,"installations":1}`, r.out)
	require.Equal(t, kept, o.data("device", "list", "--team", team)[0]["device_id"])
	o.fails(cli.ExitFailure, "There is no device "+device, "device", "delete", device, "--yes")
	o.device(team, "dev:1") // The unit is free.
}

func TestTeamDelete(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.id("id", "team", "create", "--name", "Riverside")
	other := o.team()
	o.device(team, "dev:1")
	o.device(other, "dev:2")
	o.do("key", "create", "--team", team)
	o.do("ingest-key", "create", "--team", team)
	// Keys that were revoked long ago need no wait.
	o.exec(`UPDATE api_keys SET revoked_at = '2026-01-01Z'`)
	o.exec(`UPDATE ingest_keys SET revoked_at = '2026-01-01Z'`)

	r := o.run("team", "delete", "Riverside")
	require.Equal(t, cli.ExitUsage, r.code)
	require.Regexp(t, `(?s)This deletes the team.*id: +`+team+`\nname: +Riverside\ndevices: +1\n`, r.err)
	require.Len(t, o.data("team", "list"), 2)

	r = o.run("team", "delete", "Riverside", "-y")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.JSONEq(t, `{"id":"`+team+`","name":"Riverside","devices":1,"readings":0,"assignments":0,"installations":1,
		"api_keys":1,"ingest_keys":1,"rejects":0}`, r.out)
	require.Contains(t, r.err, "(1 of 1).\n")
	require.Equal(t, other, o.data("team", "list")[0]["id"])
	require.Len(t, o.data("device", "list", "--team", other), 1)
	o.fails(cli.ExitFailure, "There is no team "+team, "team", "delete", team, "--yes")

	// A worker made a reject of an upload that was in the stream: a second run deletes it.
	o.exec(`INSERT INTO rejected_uploads (received_at, stream_sequence, reason, detail, team_id, payload)
		VALUES (now(), 1, $2, '', $1, '')`, team, string(roomsensor.ReasonUnknownUnit))
	r = o.run("team", "delete", team, "--yes")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.Contains(t, r.out, `"name":null,`)
	require.Contains(t, r.out, `"rejects":1}`)
	require.Empty(t, o.data("rejects", "list"))

	// The audit log stays, until the statement of the page.
	require.NotEmpty(t, o.data("audit", "list", "--team", team))
	_, page, found := strings.Cut(string(readFile(t, "../../docs/operate/personal-data.md")), "```sql\n")
	require.True(t, found)
	statement, _, _ := strings.Cut(page, "```")
	o.exec(strings.ReplaceAll(statement, "TEAM_ID", team))
	require.Empty(t, o.data("audit", "list", "--team", team))
	require.NotEmpty(t, o.data("audit", "list", "--team", other))
}
