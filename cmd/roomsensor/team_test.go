package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTeams(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	require.Empty(t, o.data("team", "list"))

	first := o.do("team", "create", "--name", "FC Köln <Nord> & \"Süd\"")
	require.Len(t, first, 2)
	require.Regexp(t, "^[0-9a-f-]{36}$", first["id"])
	require.Equal(t, "FC Köln <Nord> & \"Süd\"", first["name"])
	second := o.do("team", "create", "--name=-")
	require.Equal(t, []map[string]any{first, second}, o.data("team", "list"))
	require.Contains(t, o.run("team", "list").out, `FC Köln <Nord> & \"Süd\"`)

	o.fails(exitUsage, "--name", "team", "create")
	o.fails(exitUsage, "must not be empty", "team", "create", "--name", "")
	o.fails(exitUsage, "has 201 characters; at most 200 are allowed", "team", "create", "--name", strings.Repeat("ü", 201))
	o.fails(exitUsage, "control characters", "team", "create", "--name", "a\nb")
	o.fails(exitUsage, "unexpected argument", "team", "create", "--name", "a", "b")
	require.Len(t, o.data("team", "list"), 2)
	o.do("team", "create", "--name", strings.Repeat("ü", 200))
}

func TestKeys(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team, other := o.team(), o.team()

	plain := o.do("key", "create", "--team", team)
	require.Len(t, plain, 4)
	require.Regexp(t, "^rsk_"+plain["key_id"].(string)+"_[a-z2-7]{58}$", plain["key"])
	require.Equal(t, []any{"read"}, plain["scopes"])
	require.Nil(t, plain["expires_at"])

	full := o.do("key", "create", "--team", strings.ToUpper(team), "--scope", "read_write",
		"--expires-at", "2035-01-31T08:00:00.1234567Z", "--label", "dashboard")
	require.Equal(t, []any{"read_write"}, full["scopes"])
	require.Equal(t, "2035-01-31T08:00:00.123456Z", full["expires_at"])
	past := o.do("key", "create", "--team", team, "--expires-at", "2020-01-01T00:00:00Z")
	require.Equal(t, "2020-01-01T00:00:00Z", past["expires_at"])

	list := o.data("key", "list", "--team", team)
	require.Len(t, list, 3)
	require.Equal(t, plain["key_id"], list[0]["key_id"])
	require.Equal(t, map[string]any{
		"key_id": full["key_id"], "team_id": team, "label": "dashboard", "scopes": []any{"read_write"},
		"created_at": list[1]["created_at"], "expires_at": full["expires_at"], "revoked_at": nil,
	}, list[1])
	require.NotContains(t, o.run("key", "list", "--team", team).out, "rsk_")
	require.Empty(t, o.data("key", "list", "--team", other))

	revoked := o.do("key", "revoke", plain["key_id"].(string))
	require.NotNil(t, revoked["revoked_at"])
	require.Equal(t, revoked, o.do("key", "revoke", plain["key_id"].(string)), "the first revoke stays")
	require.Equal(t, revoked, o.data("key", "list", "--team", team)[0])

	o.fails(exitFailure, "There is no team "+unknown, "key", "create", "--team", unknown)
	o.fails(exitFailure, "roomsensor team list", "key", "list", "--team", unknown)
	o.fails(exitFailure, "There is no API key abcd", "key", "revoke", "abcd")
	o.fails(exitUsage, "Give the part between the two underscores", "key", "revoke", plain["key"].(string))
	o.fails(exitUsage, "is not a key_id", "key", "revoke", "")
	o.fails(exitUsage, "--scope", "key", "create", "--team", team, "--scope", "write")
	o.fails(exitUsage, "2026-01-31T08:00:00Z", "key", "create", "--team", team, "--expires-at", "2030-01-01")
	o.fails(exitUsage, "--expires-at", "key", "create", "--team", team, "--expires-at", "2030-01-01T00:00:00+00:00")
	o.fails(exitUsage, "must not be empty", "key", "create", "--team", team, "--label", "")
	o.fails(exitUsage, `--team: "x" is not an id`, "key", "list", "--team", "x")
	o.fails(exitUsage, "is not an id", "key", "create", "--team", strings.ReplaceAll(team, "-", ""))
	o.fails(exitUsage, "is not an id", "key", "create", "--team", "{"+team+"}")
	o.fails(exitUsage, "--team", "key", "create")
	o.fails(exitUsage, "key-id", "key", "revoke")
}

func TestIngestKeys(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.team()
	made := o.do("ingest-key", "create", "--team", team, "--label", "gateway")
	require.Len(t, made, 2)
	require.Regexp(t, "^rsi_"+made["key_id"].(string)+"_[a-z2-7]{58}$", made["key"])

	list := o.data("ingest-key", "list", "--team", team)
	require.Equal(t, []map[string]any{{
		"key_id": made["key_id"], "team_id": team, "label": "gateway",
		"created_at": list[0]["created_at"], "revoked_at": nil,
	}}, list)
	revoked := o.do("ingest-key", "revoke", made["key_id"].(string))
	require.NotNil(t, revoked["revoked_at"])
	require.Equal(t, revoked, o.do("ingest-key", "revoke", made["key_id"].(string)))

	key := o.id("key_id", "key", "create", "--team", team)
	o.fails(exitFailure, "There is no upload credential "+key, "ingest-key", "revoke", key)
	o.fails(exitFailure, "There is no team", "ingest-key", "create", "--team", unknown)
	o.fails(exitFailure, "There is no team", "ingest-key", "list", "--team", unknown)
	o.fails(exitUsage, "is not an id", "ingest-key", "create", "--team", "1")
	o.fails(exitUsage, "is not a key_id", "ingest-key", "revoke", made["key"].(string))
	o.fails(exitUsage, "control characters", "ingest-key", "create", "--team", team, "--label", "a\tb")
}
