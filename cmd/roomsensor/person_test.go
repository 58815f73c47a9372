package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
)

// athlete creates a team with a device that an athlete had for a day, with two readings then and one later.
func athlete(o *operator) (team, assignment string) {
	o.t.Helper()
	team = o.id("id", "team", "create", "--name", "Riverside")
	device := o.device(team, "dev:1", "--name", "Room of Kim Lee")
	assignment = o.id("assignment_id", "assignment", "start", device, "--type", "athlete", "--label", "Kim Lee",
		"--external-ref", "crm-7", "--at", "2026-01-01T00:00:00Z", "--yes")
	o.do("assignment", "end", assignment, "--at", "2026-01-02T00:00:00Z")
	o.exec(`INSERT INTO readings (device_id, bucket_at, co2_ppm, ingested_at) SELECT $1, at, 400, '2026-01-04Z'
		FROM unnest('{2026-01-01Z,2026-01-01 23:55Z,2026-01-02Z}'::timestamptz[]) at`, device)
	return team, assignment
}

func TestPersonExport(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	_, assignment := athlete(o)
	directory := filepath.Join(t.TempDir(), "kim")
	export := []string{"person", "export", "--team", "Riverside", "--label", "Kim Lee", "--to", directory}
	require.Equal(t, map[string]any{
		"directory": directory, "assignments": 1.0, "readings": 2.0, "audit_log": 2.0, "mentions": 7.0,
	}, o.do(export...))

	text, err := os.ReadFile(filepath.Join(directory, personFile))
	require.NoError(t, err)
	var record struct {
		Label       string           `json:"label"`
		Assignments []map[string]any `json:"assignments"`
		AuditLog    []map[string]any `json:"audit_log"`
	}
	require.NoError(t, json.Unmarshal(text, &record))
	require.Equal(t, "Kim Lee", record.Label)
	require.Equal(t, assignment, record.Assignments[0]["assignment_id"])
	require.Equal(t, "dev:1", record.Assignments[0]["hardware_id"])
	require.Equal(t, "2026-01-02T00:00:00Z", record.Assignments[0]["ended_at"])
	require.EqualValues(t, 2, record.Assignments[0]["readings"])
	require.Equal(t, "create", record.AuditLog[0]["action"])
	readings, err := os.ReadFile(filepath.Join(directory, readingsFile))
	require.NoError(t, err)
	device, ok := record.Assignments[0]["device_id"].(string)
	require.True(t, ok)
	require.Equal(t, "bucket_at,device_id,display_name,co2_ppm,temp_c,humidity_pct,lux,spl_db,valid_mask,ingested_at\n"+
		"2026-01-01T23:55:00Z,"+device+",Room of Kim Lee,400,,,,,1,2026-01-04T00:00:00Z\n"+
		"2026-01-01T00:00:00Z,"+device+",Room of Kim Lee,400,,,,,1,2026-01-04T00:00:00Z\n", string(readings))
	for name, mode := range map[string]os.FileMode{".": 0o700, personFile: 0o600, readingsFile: 0o600} {
		info, err := os.Stat(filepath.Join(directory, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), name)
	}

	o.fails(cli.ExitFailure, "--to must be a directory that does not exist yet", export...)
	o.fails(cli.ExitUsage, "give either --label or --external-ref", "person", "export", "--team", "Riverside", "--to", "x")
	o.fails(cli.ExitUsage, "give either --label or --external-ref", append(export, "--external-ref", "crm-7")...)
	r := o.run("person", "export", "--team", "Riverside", "--label", "Nobody", "--to", directory+"2")
	require.Equal(t, cli.ExitOK, r.code)
	require.Contains(t, r.err, "stores nothing under this name")

	o.exec(`ALTER TABLE readings RENAME lux TO light`)
	require.NotEqual(t, cli.ExitOK, o.run(append(export, "--to", directory+"3")...).code)
	require.NoDirExists(t, directory+"3", "a part of an export")
}

func TestPersonErase(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team, _ := athlete(o)
	erase := func(more ...string) []string {
		return append([]string{"person", "erase", "--team", "Riverside", "--external-ref", "crm-7"}, more...)
	}
	list := func() string { return o.run("assignment", "list", "Room of Kim Lee").out }

	plan := o.do(erase("--dry-run")...)
	require.Equal(t, true, plan["dry_run"])
	require.EqualValues(t, 1, plan["assignments"])
	r := o.run(erase()...)
	require.Equal(t, cli.ExitUsage, r.code)
	require.Contains(t, r.err, "add --yes to continue")
	require.Contains(t, list(), "Kim Lee", "nothing is changed without a confirmation")

	r = o.run(erase("--yes")...)
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.Regexp(t, `"replaced_by":"erased person [0-9a-f]{8}","assignments":1,"notes":0,"audit_log":2,`, r.out)
	require.Contains(t, r.out, `"field":"display_name","text":"Room of Kim Lee"`)
	require.NotContains(t, list(), "Kim Lee")
	require.NotContains(t, list(), "crm-7")

	// A second run changes nothing. The names of devices are changed by the operator, and their copies on request.
	r = o.run(erase()...)
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.Contains(t, r.out, `"replaced_by":null,"assignments":0,"notes":0,"audit_log":0,`)
	require.Contains(t, o.run("audit", "list", "--team", team).out, "Room of Kim Lee")
	o.do("device", "rename", "Room of Kim Lee", "--name", "Room 1")
	r = o.run("person", "erase", "--team", team, "--label", "Kim Lee", "--mentions", "--yes")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.Contains(t, r.out, `"mentions":[]`)
	require.NotContains(t, o.run("audit", "list", "--team", team).out, "Kim Lee")
}

func TestUserDelete(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.environment["DASHBOARD_URL"] = "https://dashboard.example.com"
	o.team()
	team := o.id("id", "team", "create", "--name", "Riverside")
	for _, more := range [][]string{nil, {"--erase-audit-log"}} {
		o.do("user", "invite", "--team", team, "--email", "ana@example.com", "--role", "admin")
		r := o.run("user", "delete", "ana@example.com")
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, "This deletes the account")
		r = o.run(append([]string{"user", "delete", "ana@example.com", "--yes"}, more...)...)
		require.Equal(t, cli.ExitOK, r.code, r.err)
		require.Empty(t, o.data("user", "list"))
		o.fails(cli.ExitFailure, "There is no person with the email address ana@example.com", "user", "delete", "ana@example.com", "--yes")
	}
	users := o.data("audit", "list", "--object", "ana@example.com")
	require.NotEmpty(t, users, "without --erase-audit-log, the address stays")
	for _, entry := range users {
		require.NotEqual(t, "erased person", entry["object_name"])
	}
}
