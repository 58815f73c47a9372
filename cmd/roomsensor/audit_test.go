package main

import (
	"os/user"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
)

func TestAuditList(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.team()
	device := o.device(team, "dev:1")
	o.do("device", "rename", device, "--name", "Room 12")
	o.do("assignment", "start", device, "--type", "place", "--label", "Room 12", "--at", "2026-01-01T00:00:00Z", "--yes")
	other := o.team()
	o.device(other, "dev:2")

	me := cli.OperatorOf(user.Current).Name
	entries := o.data("audit", "list", "--team", team, "--object", device)
	require.Len(t, entries, 4)
	renamed := entries[1]
	require.Equal(t, map[string]any{
		"at": renamed["at"], "actor_kind": "operator", "actor": me, "user_id": nil, "database_user": renamed["database_user"],
		"team_id": team, "action": "change", "object_kind": "device", "object_id": device, "object_name": "Room 12", "reason": nil,
		"device_id": device, "device_name": "Room 12",
		"before": map[string]any{"display_name": nil}, "after": map[string]any{"display_name": "Room 12"},
	}, renamed)
	started := entries[0]
	require.Equal(t, "assignment", started["object_kind"])
	require.Nil(t, started["before"])
	require.Subset(t, started["after"], map[string]any{"label": "Room 12", "started_at": "2026-01-01T00:00:00Z"})

	require.Len(t, o.data("audit", "list", "--team", team, "--limit", "2"), 2)
	require.Len(t, o.data("audit", "list", "--actor", me, "--team", team), 5)
	require.Empty(t, o.data("audit", "list", "--actor", "nobody"))
	require.Empty(t, o.data("audit", "list", "--since", "2999-01-01T00:00:00Z"))
	require.Len(t, o.data("audit", "list", "--object", "dev:2"), 2)

	o.run("device", "delete", device, "--yes")
	deleted := o.data("audit", "list", "--team", team, "--limit", "1")[0]
	require.Equal(t, "delete", deleted["action"])
	require.Subset(t, deleted["before"], map[string]any{"display_name": "Room 12", "hardware_id": "dev:1"})

	o.fails(cli.ExitUsage, "--limit", "audit", "list", "--limit", "0")
	o.fails(cli.ExitUsage, "is not a UTC time", "audit", "list", "--since", "yesterday")
	o.fails(cli.ExitFailure, "There is no team with the name", "audit", "list", "--team", "none")
}
