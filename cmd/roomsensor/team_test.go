package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
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

	o.fails(cli.ExitUsage, "--name", "team", "create")
	o.fails(cli.ExitUsage, "must not be empty", "team", "create", "--name", "")
	o.fails(cli.ExitUsage, "has 201 characters; at most 200 are allowed", "team", "create", "--name", strings.Repeat("ü", 201))
	o.fails(cli.ExitUsage, "control characters", "team", "create", "--name", "a\nb")
	o.fails(cli.ExitUsage, "unexpected argument", "team", "create", "--name", "a", "b")
	require.Len(t, o.data("team", "list"), 2)
	o.do("team", "create", "--name", strings.Repeat("ü", 200))
}

func TestTeamNames(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.id("id", "team", "create", "--name", "Riverside Athletics")
	require.Equal(t, team, o.id("team_id", "device", "create", "--team", "Riverside Athletics", "--hardware-id", "dev:1"))
	require.Len(t, o.data("device", "list", "--team", "Riverside Athletics"), 1)
	require.Empty(t, o.data("rejects", "list", "--team", "Riverside Athletics"))
	o.fails(cli.ExitFailure, `There is no team with the name "riverside athletics"`, "device", "list", "--team", "riverside athletics")
	o.fails(cli.ExitFailure, `There is no team with the name`, "device", "list", "--team", strings.ReplaceAll(team, "-", ""))

	o.fails(cli.ExitFailure, `The name "Riverside Athletics" belongs to `+team+` already`, "team", "create", "--name", "Riverside Athletics")
	second := o.id("id", "team", "create", "--name", "Riverside Athletics", "--allow-same-name")
	o.fails(cli.ExitFailure, `Several teams have the name "Riverside Athletics": `+team+", "+second+". Give the id of one of them.",
		"key", "create", "--team", "Riverside Athletics")
	renamed := o.do("team", "rename", second, "--name", "Riverside II")
	require.Equal(t, map[string]any{"id": second, "name": "Riverside II"}, renamed)
	require.Equal(t, renamed, o.data("team", "list")[1])
	require.Len(t, o.data("device", "list", "--team", "Riverside Athletics"), 1, "the name is unambiguous again")
	o.fails(cli.ExitFailure, "belongs to "+team+" already", "team", "rename", second, "--name", "Riverside Athletics")
	o.do("team", "rename", "Riverside II", "--name", "Riverside II")
	o.do("team", "rename", "Riverside II", "--name", "Third")
	o.fails(cli.ExitFailure, "There is no team "+unknown, "team", "rename", unknown, "--name", "x")
	o.fails(cli.ExitUsage, "must not be empty", "team", "rename", second, "--name", "")
}

func TestTeamSet(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.id("id", "team", "create", "--name", "Riverside")
	want := map[string]any{
		"id": team, "name": "Riverside", "time_zone": "UTC", "night": "22:00-07:00", "keep_days": nil,
		"limits": map[string]any{
			"co2_ppm": "..1000/1400", "temp_c": "16/14..24/27", "humidity_pct": "20/..70/", "spl_db": "..45/55",
		},
		"limit_rules": []any{},
	}
	require.Equal(t, want, o.do("team", "show", "Riverside"))
	require.Equal(t, want, o.do("team", "set", team), "nothing is named")

	want["time_zone"], want["night"] = "Europe/Berlin", "23:30-06:00"
	want["limits"] = map[string]any{
		"co2_ppm": "400..1000", "temp_c": "16/14..24/27", "humidity_pct": "20/..70/", "lux": "..10.5/20",
	}
	require.Equal(t, want, o.do("team", "set", "Riverside", "--time-zone", "Europe/Berlin", "--night", "23:30-06:00",
		"--limit", "co2_ppm=400..1000", "--limit", "spl_db=..", "--limit", "lux=..10.5/20"))
	require.Equal(t, want, o.do("team", "show", team))
	require.Contains(t, o.run("team", "show", team).out, "400..1000")

	o.fails(cli.ExitUsage, "is not an IANA time zone", "team", "set", team, "--time-zone", "europe/berlin")
	o.fails(cli.ExitUsage, "must not end at the time at which it begins", "team", "set", team, "--night", "07:00-07:00")
	o.fails(cli.ExitUsage, "has the form 22:00-07:00", "team", "set", team, "--night", "22")
	o.fails(cli.ExitUsage, "is not METRIC=LOW..HIGH", "team", "set", team, "--limit", "co2=..1200")
	o.fails(cli.ExitUsage, "from the lowest to the highest", "team", "set", team, "--limit", "co2_ppm=1200..400")
	o.fails(cli.ExitFailure, "There is no team "+unknown, "team", "set", unknown, "--time-zone", "UTC")
	require.Equal(t, want, o.do("team", "show", team))
}

func TestTeamTable(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.team()
	const table = "^ID +NAME\n[0-9a-f-]{36}  Team [0-9a-f-]{36}\n$"
	require.Regexp(t, table, o.run("team", "list", "--output", "table").out)
	require.Equal(t, "id:    "+team+"\nname:  Other\n", o.run("team", "rename", team, "--name", "Other", "--output", "table").out)
}
