package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
	"roomsensor/test/conformance"
)

func TestSources(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A10.2", "A11.1", "A11.10", "A11.11", "A12.2", "A13.1")
	o := newOperator(t)
	team := o.team()
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "file.json")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	created := o.do("source", "create", "--team", team, "--name", "Gateway", "--format", "notehub", "--ingest-url", "https://in.example.com/")
	id := created["source_id"].(string)
	require.Regexp(t, "^rsi_", created["key"])
	require.Equal(t, map[string]any{
		"source_id": id, "name": "Gateway", "format": "notehub", "url": "https://in.example.com/sources/" + id, "key": created["key"],
	}, created)
	keys := o.data("ingest-key", "list", "--team", team)
	require.Len(t, keys, 1)
	require.Equal(t, id, keys[0]["source_id"])
	require.Regexp(t, "^rsi_", o.do("ingest-key", "create", "--team", team, "--source", "Gateway")["key"])
	list := o.data("source", "list", "--team", team)
	require.Equal(t, map[string]any{
		"source_id": id, "team_id": team, "name": "Gateway", "format": "notehub", "mapping": nil, "created_at": list[0]["created_at"],
		"disabled_at": nil, "last_received_at": nil, "messages": 0.0, "stored": 0.0, "rejected": 0.0, "ignored": 0.0,
	}, list[0])

	message := file(`{"device":"dev:5c0272311928","when":1763632800,"body":{"ppm":640}}`)
	tested := o.do("source", "test", id, message, "--suggest")
	require.Equal(t, "not_mapped", tested["rejects"].([]any)[0].(map[string]any)["reason"])
	require.Contains(t, tested["paths"], map[string]any{"path": "body.ppm", "value": "640"})
	mapping := file(`{"metrics":{"co2_ppm":[{"path":"body.ppm"}]}}`)
	tried := o.do("source", "test", id, message, "--mapping", mapping)["readings"].([]any)[0].(map[string]any)
	require.Equal(t, []any{640.0, nil}, []any{tried["co2_ppm"], tried["device_id"]})
	require.Nil(t, o.do("source", "show", id)["mapping"], "a trial changes nothing")
	o.do("source", "set", "Gateway", "--team", team, "--mapping", mapping)
	shown := o.do("source", "show", id)
	require.JSONEq(t, `{"metrics":{"co2_ppm":[{"path":"body.ppm"}]}}`, shown["mapping"].(string))
	device := o.do("device", "create", "--team", team, "--alias", "dev:5c0272311928", "--name", "Hall")
	require.Equal(t, "whole", device["sampling"])
	require.Equal(t, "mean", o.do("device", "set-sampling", "Hall", "mean")["sampling"])
	lines := o.do("source", "create", "--team", team, "--name", "Lines", "--format", "influx")["source_id"].(string)
	require.Equal(t, "mean", o.do("device", "create", "--team", team, "--alias", "x", "--source", lines)["sampling"])
	require.Equal(t, "mean", o.do("device", "create", "--team", team, "--hardware-id", "dev:2", "--sampling", "mean")["sampling"])
	o.run("source", "delete", lines, "--yes")
	require.Equal(t, "dev:101165575510312", device["hardware_id"])
	require.Equal(t, "dev:5c0272311928", device["alias"])
	require.Contains(t, o.run("device", "list", "--team", team).out, `"alias":"dev:5c0272311928"`)
	tested = o.do("source", "test", "Gateway", message, "--team", team)
	require.Empty(t, tested["rejects"])
	reading := tested["readings"].([]any)[0].(map[string]any)
	require.Equal(t, []any{"Hall", 640.0}, []any{reading["display_name"], reading["co2_ppm"]})

	require.Empty(t, o.data("rejects", "list", "--source", "Gateway", "--team", team))
	require.InDelta(t, 0, o.do("rejects", "replay", "--source", "Gateway", "--team", team)["replayed"], 0)
	o.fails(cli.ExitFailure, "together with --team", "rejects", "list", "--source", "Gateway")
	require.NotNil(t, o.do("source", "set", id, "--disable")["disabled_at"])
	require.Nil(t, o.do("source", "set", id, "--enable", "--no-mapping")["mapping"])
	require.Contains(t, o.run("source", "formats", "notehub").out, `"unit"`)
	require.Greater(t, len(o.data("source", "formats")), 10)

	o.fails(cli.ExitUsage, "there is no format", "source", "create", "--team", team, "--name", "x", "--format", "x")
	o.fails(cli.ExitUsage, "The mapping is empty", "source", "set", id, "--mapping", file(""))
	o.fails(cli.ExitUsage, "metrics.co2_ppm[0].path", "source", "set", id, "--mapping", file(`{"metrics":{"co2_ppm":[{"path":"a..b"}]}}`))
	o.fails(cli.ExitUsage, "Say what to change", "source", "set", id)
	o.fails(cli.ExitUsage, "cannot be read", "source", "test", id, "/no/such/file")
	o.fails(cli.ExitUsage, "is not a member of a mapping", "source", "test", id, message, "--mapping", file(`{"x":1}`))
	o.fails(cli.ExitUsage, "Write A84041B9D1C20004", "device", "create", "--team", team, "--alias", "A8 40 41 B9 D1 C2 00 04")
	o.fails(cli.ExitFailure, "There is no source "+unknown, "source", "show", unknown)
	o.fails(cli.ExitFailure, "together with --team", "source", "show", "Gateway")
	o.fails(cli.ExitFailure, "Choose another name", "source", "create", "--team", team, "--name", "Gateway", "--format", "tts")
	o.fails(cli.ExitFailure, `There is no format "x"`, "source", "formats", "x")
	o.fails(cli.ExitUsage, "needs no alias", "device", "create", "--team", team, "--alias", "dev:1")
	o.fails(cli.ExitUsage, "alias", "device", "create", "--team", team)
	require.Contains(t, o.run("source", "delete", id, "--yes").out, id)
	require.Empty(t, o.data("source", "list", "--team", team))
	require.NotNil(t, o.data("ingest-key", "list", "--team", team)[0]["revoked_at"])
}
