package main

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
	"roomsensor/internal/roomsensor"
)

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
		"last_used_at": nil, "last_client": nil,
	}, list[1])
	require.NotContains(t, o.run("key", "list", "--team", team).out, "rsk_")
	require.Empty(t, o.data("key", "list", "--team", other))

	revoked := o.do("key", "revoke", plain["key_id"].(string))
	require.NotNil(t, revoked["revoked_at"])
	require.Equal(t, revoked, o.do("key", "revoke", plain["key_id"].(string)), "the first revoke stays")
	listed := o.data("key", "list", "--team", team)[0]
	maps.DeleteFunc(listed, func(field string, _ any) bool { return strings.HasPrefix(field, "last_") })
	require.Equal(t, revoked, listed)

	o.fails(cli.ExitFailure, "There is no team "+unknown, "key", "create", "--team", unknown)
	o.fails(cli.ExitFailure, "roomsensor team list", "key", "list", "--team", unknown)
	o.fails(cli.ExitFailure, "There is no API key abcd", "key", "revoke", "abcd")
	o.fails(cli.ExitUsage, "Give the part between the two underscores", "key", "revoke", plain["key"].(string))
	o.fails(cli.ExitUsage, "is not a key_id", "key", "revoke", "")
	o.fails(cli.ExitUsage, "--scope", "key", "create", "--team", team, "--scope", "write")
	o.fails(cli.ExitUsage, "2026-01-31T08:00:00Z", "key", "create", "--team", team, "--expires-at", "2030-01-01")
	o.fails(cli.ExitUsage, "--expires-at", "key", "create", "--team", team, "--expires-at", "2030-01-01T00:00:00+00:00")
	o.fails(cli.ExitUsage, "must not be empty", "key", "create", "--team", team, "--label", "")
	o.fails(cli.ExitUsage, "--team", "key", "create")
	o.fails(cli.ExitUsage, "key-id", "key", "revoke")
}

func TestIngestKeys(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.team()
	made := o.do("ingest-key", "create", "--team", team, "--label", "gateway")
	require.Len(t, made, 3)
	require.Nil(t, made["expires_at"])
	require.Regexp(t, "^rsi_"+made["key_id"].(string)+"_[a-z2-7]{58}$", made["key"])

	list := o.data("ingest-key", "list", "--team", team)
	require.Equal(t, []map[string]any{{
		"key_id": made["key_id"], "team_id": team, "source_id": nil, "label": "gateway",
		"created_at": list[0]["created_at"], "expires_at": nil, "revoked_at": nil,
		"last_used_at": nil, "last_client": nil,
	}}, list)
	revoked := o.do("ingest-key", "revoke", made["key_id"].(string))
	require.NotNil(t, revoked["revoked_at"])
	require.Equal(t, revoked, o.do("ingest-key", "revoke", made["key_id"].(string)))

	key := o.id("key_id", "key", "create", "--team", team)
	o.fails(cli.ExitFailure, "There is no upload credential "+key, "ingest-key", "revoke", key)
	o.fails(cli.ExitFailure, "There is no team", "ingest-key", "create", "--team", unknown)
	o.fails(cli.ExitFailure, "There is no team", "ingest-key", "list", "--team", unknown)
	o.fails(cli.ExitUsage, "is not a key_id", "ingest-key", "revoke", made["key"].(string))
	o.fails(cli.ExitUsage, "control characters", "ingest-key", "create", "--team", team, "--label", "a\tb")
}

// parseTime parses a time of a result.
func parseTime(t *testing.T, text any) time.Time {
	t.Helper()
	at, ok := roomsensor.ParseTime(text.(string))
	require.True(t, ok, text)
	return at
}

func TestKeyRotate(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.team()
	for command, create := range map[string][]string{
		"key":        {"key", "create", "--team", team, "--scope", "read_write", "--label", "app"},
		"ingest-key": {"ingest-key", "create", "--team", team, "--label", "app"},
	} {
		old := o.id("key_id", create...)
		list := func() (list []map[string]any) { return o.data(command, "list", "--team", team) }
		before := time.Now()
		rotated := o.do(command, "rotate", old)
		after := time.Now()
		require.NotEqual(t, old, rotated["key_id"])
		require.Contains(t, rotated["key"], rotated["key_id"])
		replaces, ok := rotated["replaces"].(map[string]any)
		require.True(t, ok)
		require.Equal(t, old, replaces["key_id"])
		// The clock of the database is that of this machine.
		require.WithinRange(t, parseTime(t, replaces["expires_at"]), before.Add(24*time.Hour-time.Minute), after.Add(24*time.Hour+time.Minute))

		keys := list()
		require.Len(t, keys, 2)
		require.Equal(t, replaces["expires_at"], keys[0]["expires_at"])
		require.Nil(t, keys[0]["revoked_at"])
		want := keys[0]
		want["key_id"], want["created_at"], want["expires_at"] = rotated["key_id"], keys[1]["created_at"], nil
		require.Equal(t, want, keys[1], "the same label and scope, and no expiration")

		// A shorter overlap ends the old key earlier, a longer one does not extend it.
		again, ok := o.do(command, "rotate", old, "--overlap", "1h")["replaces"].(map[string]any)
		require.True(t, ok)
		require.True(t, parseTime(t, again["expires_at"]).Before(parseTime(t, replaces["expires_at"])))
		longer := o.do(command, "rotate", old, "--overlap", "48h")
		require.Equal(t, again, longer["replaces"])
		require.Equal(t, again["expires_at"], longer["expires_at"], "the new key keeps the expiration of the old one")

		o.do(command, "revoke", old)
		o.fails(cli.ExitFailure, "roomsensor "+command+" create --team "+team, command, "rotate", old)
		o.fails(cli.ExitFailure, "There is no", command, "rotate", "abcd")
		o.fails(cli.ExitUsage, "--overlap", command, "rotate", old, "--overlap", "4s")
		require.Len(t, list(), 4, "a refused rotation creates no key")
	}
	expired := o.id("key_id", "key", "create", "--team", team, "--expires-at", "2020-01-01T00:00:00Z")
	o.fails(cli.ExitFailure, "was revoked or has expired", "key", "rotate", expired)
}
