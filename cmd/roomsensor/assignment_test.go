package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
)

func TestAssignments(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.team()
	device := o.device(team, "dev:1")
	require.Empty(t, o.data("assignment", "list", device))

	first := o.do("assignment", "start", device, "--type", "place", "--label", "Room 12", "--at", "2026-01-01T00:00:00Z")
	require.Equal(t, map[string]any{
		"assignment_id": first["assignment_id"], "device_id": device, "type": "place", "label": "Room 12",
		"home_or_travel": "home", "started_at": "2026-01-01T00:00:00Z", "ended_at": nil, "external_ref": nil,
	}, first)
	require.Equal(t, map[string]any{
		"assignment_id": first["assignment_id"], "label": "Room 12",
		"started_at": "2026-01-01T00:00:00Z", "external_ref": nil,
	}, o.data("device", "list", "--team", team)[0]["active_assignment"])

	id, ok := first["assignment_id"].(string)
	require.True(t, ok)
	o.fails(cli.ExitFailure, "has the open assignment "+id, "assignment", "start", device, "--type", "place", "--label", "x")
	o.fails(cli.ExitFailure, "Choose a later end", "assignment", "end", id, "--at", "2026-01-01T00:00:00Z")
	o.fails(cli.ExitFailure, "Choose a later end", "assignment", "end", id, "--at", "2025-01-01T00:00:00Z")
	o.fails(cli.ExitFailure, "is in the future", "assignment", "end", id, "--at", "2999-01-01T00:00:00Z")
	o.fails(cli.ExitFailure, "--at 0026-01-01T00:00:00Z is before 2015", "assignment", "end", id, "--at", "0026-01-01T00:00:00Z")
	ended := o.do("assignment", "end", id, "--at", "2026-02-01T00:00:00Z")
	require.Equal(t, "2026-02-01T00:00:00Z", ended["ended_at"])
	o.fails(cli.ExitFailure, "already ended at 2026-02-01T00:00:00Z", "assignment", "end", id)
	require.Nil(t, o.data("device", "list", "--team", team)[0]["active_assignment"])

	o.fails(cli.ExitFailure, "had the assignment "+id+" from 2026-01-01T00:00:00Z until 2026-02-01T00:00:00Z",
		"assignment", "start", device, "--type", "place", "--label", "x", "--at", "2026-01-31T00:00:00Z")
	o.fails(cli.ExitFailure, "had the assignment "+id, "assignment", "start", device, "--type", "place", "--label", "x", "--at", "2025-12-31T00:00:00Z")
	second := o.do("assignment", "start", device, "--type", "athlete", "--label", "A. Runner",
		"--home-or-travel", "travel", "--external-ref", "crm-7", "--at", "2026-02-01T00:00:00Z")
	require.Equal(t, "athlete", second["type"])
	require.Equal(t, "travel", second["home_or_travel"])
	require.Equal(t, "crm-7", second["external_ref"])
	require.Equal(t, []map[string]any{second, ended}, o.data("assignment", "list", device))

	// Without --at it is now: the assignment starts and ends in order.
	third := o.device(team, "dev:3")
	now := o.id("assignment_id", "assignment", "start", third, "--type", "place", "--label", "now")
	require.NotNil(t, o.do("assignment", "end", now)["ended_at"])
}

func TestAssignmentTransfer(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	device := o.device(o.team(), "dev:1")
	first := o.do("assignment", "start", device, "--type", "athlete", "--label", "Anna", "--at", "2026-01-01T00:00:00Z")
	id, ok := first["assignment_id"].(string)
	require.True(t, ok)
	transfer := func(more ...string) []string {
		return append([]string{"assignment", "transfer", id, "--type", "athlete", "--label", "Bea"}, more...)
	}
	o.fails(cli.ExitFailure, "Choose a later end", transfer("--at", "2026-01-01T00:00:00Z")...)
	o.fails(cli.ExitFailure, "is in the future", transfer("--at", "2999-01-01T00:00:00Z")...)
	o.fails(cli.ExitFailure, "There is no assignment "+unknown, "assignment", "transfer", unknown, "--type", "place", "--label", "x")

	next := o.do(transfer("--at", "2026-01-02T00:00:00Z", "--external-ref", "crm-7")...)
	first["ended_at"] = "2026-01-02T00:00:00Z"
	require.Equal(t, map[string]any{
		"assignment_id": next["assignment_id"], "device_id": device, "type": "athlete", "label": "Bea",
		"home_or_travel": "home", "started_at": "2026-01-02T00:00:00Z", "ended_at": nil, "external_ref": "crm-7",
		"replaces": first,
	}, next)
	o.fails(cli.ExitFailure, "already ended at 2026-01-02T00:00:00Z", transfer()...)
}

func TestAssignmentErrors(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	device := o.device(o.team(), "dev:1")
	start := func(more ...string) []string { return append([]string{"assignment", "start", device}, more...) }

	o.fails(cli.ExitFailure, "There is no device "+unknown, "assignment", "start", unknown, "--type", "place", "--label", "x")
	o.fails(cli.ExitFailure, "There is no device "+unknown, "assignment", "list", unknown)
	o.fails(cli.ExitFailure, "There is no assignment "+unknown, "assignment", "end", unknown)
	o.fails(cli.ExitFailure, "is in the future", start("--type", "place", "--label", "x", "--at", "2999-01-01T00:00:00Z")...)
	o.fails(cli.ExitUsage, "--type", start("--label", "x")...)
	o.fails(cli.ExitUsage, "--type", start("--type", "room", "--label", "x")...)
	o.fails(cli.ExitUsage, "--label", start("--type", "place")...)
	o.fails(cli.ExitUsage, "must not be empty", start("--type", "place", "--label", "")...)
	o.fails(cli.ExitUsage, "--home-or-travel", start("--type", "place", "--label", "x", "--home-or-travel", "away")...)
	o.fails(cli.ExitUsage, "--external-ref", start("--type", "place", "--label", "x", "--external-ref", "")...)
	o.fails(cli.ExitUsage, "is not a UTC time", start("--type", "place", "--label", "x", "--at", "now")...)
	o.fails(cli.ExitUsage, "is not an id", "assignment", "end", "x")
	require.Empty(t, o.data("assignment", "list", device))
}
