package main

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
)

// asks checks that a command shows a sentence, asks for a confirmation, and changes nothing without one.
func (o *operator) asks(sentence string, args ...string) {
	o.t.Helper()
	r := o.run(args...)
	require.Equal(o.t, cli.ExitUsage, r.code, r.err)
	require.Contains(o.t, r.err, sentence)
	require.Contains(o.t, r.err, "add --yes to continue")
}

func TestAssignments(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.team()
	device := o.device(team, "dev:1")
	require.Empty(t, o.data("assignment", "list", device))

	start := []string{"assignment", "start", device, "--type", "place", "--label", "Room 12", "--at", "2026-01-01T00:00:00Z"}
	o.asks("Room 12 starts at 2026-01-01T00:00:00Z, more than 30 days ago. Check the date.", start...)
	first := o.do(append(start, "--yes")...)
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
		"--home-or-travel", "travel", "--external-ref", "crm-7", "--at", "2026-02-01T00:00:00Z", "--yes")
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
	first := o.do("assignment", "start", device, "--type", "athlete", "--label", "Anna", "--at", "2026-01-01T00:00:00Z", "--yes")
	id, ok := first["assignment_id"].(string)
	require.True(t, ok)
	transfer := func(more ...string) []string {
		return append([]string{"assignment", "transfer", id, "--type", "athlete", "--label", "Bea"}, more...)
	}
	o.fails(cli.ExitFailure, "Choose a later end", transfer("--at", "2026-01-01T00:00:00Z")...)
	o.fails(cli.ExitFailure, "is in the future", transfer("--at", "2999-01-01T00:00:00Z")...)
	o.fails(cli.ExitFailure, "There is no assignment "+unknown, "assignment", "transfer", unknown, "--type", "place", "--label", "x")

	o.asks("Bea starts at 2026-01-02T00:00:00Z", transfer("--at", "2026-01-02T00:00:00Z")...)
	next := o.do(transfer("--at", "2026-01-02T00:00:00Z", "--external-ref", "crm-7", "--yes")...)
	first["ended_at"] = "2026-01-02T00:00:00Z"
	require.Equal(t, map[string]any{
		"assignment_id": next["assignment_id"], "device_id": device, "type": "athlete", "label": "Bea",
		"home_or_travel": "home", "started_at": "2026-01-02T00:00:00Z", "ended_at": nil, "external_ref": "crm-7",
		"replaces": first,
	}, next)
	o.fails(cli.ExitFailure, "already ended at 2026-01-02T00:00:00Z", transfer()...)
}

// ago returns a time before now as a flag takes it.
func ago(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }

// TestAssignmentEdit checks edit and delete, their dry runs, and the reasons in the audit log.
func TestAssignmentEdit(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.team()
	device := o.device(team, "dev:1")
	started, began := ago(10*24*time.Hour), ago(5*24*time.Hour)
	first := o.do("assignment", "start", device, "--type", "athlete", "--label", "Ana Ruis", "--at", started)
	id, ok := first["assignment_id"].(string)
	require.True(t, ok)
	edit := func(more ...string) []string { return append([]string{"assignment", "edit", id}, more...) }

	plan := o.do(edit("--label", "Ana Ruiz", "--dry-run")...)
	require.Regexp(t, `text:\d+ nights move from Ana Ruis to Ana Ruiz`, fmt.Sprint(plan["nights"]))
	require.Equal(t, []any{first}, plan["before"])
	require.Equal(t, []any{}, plan["warnings"])
	require.Equal(t, []map[string]any{first}, o.data("assignment", "list", device), "a dry run changes nothing")
	maps.Copy(first, map[string]any{
		"label": "Ana Ruiz", "external_ref": "crm-7", "home_or_travel": "travel", "started_at": began, "ended_at": ago(time.Hour),
	})
	require.Equal(t, first, o.do(edit("--label", "Ana Ruiz", "--external-ref", "crm-7", "--home-or-travel", "travel",
		"--started-at", began, "--ended-at", fmt.Sprint(first["ended_at"]), "--reason", "misspelt")...))
	first["ended_at"], first["external_ref"], first["type"] = nil, nil, "place"
	require.Equal(t, first, o.do(edit("--no-end", "--no-external-ref", "--type", "place")...))
	o.asks("Ana Ruiz starts at 2026-01-01T00:00:00Z", edit("--started-at", "2026-01-01T00:00:00Z")...)

	o.fails(cli.ExitFailure, "Choose a later end", edit("--ended-at", began)...)
	o.fails(cli.ExitFailure, "is in the future", edit("--ended-at", "2999-01-01T00:00:00Z")...)
	o.fails(cli.ExitUsage, "--no-end", edit("--no-end", "--ended-at", began)...)
	o.fails(cli.ExitFailure, "There is no assignment "+unknown, "assignment", "edit", unknown, "--label", "x")
	o.do("assignment", "end", id, "--at", ago(time.Hour))
	o.do("assignment", "start", device, "--type", "place", "--label", "x")
	o.fails(cli.ExitFailure, "has the open assignment", edit("--no-end")...)

	deletion := []string{"assignment", "delete", id, "--reason", "wrong room"}
	o.asks("nights of Ana Ruiz lose the assignment", deletion...)
	require.Contains(t, o.do(append(deletion, "--dry-run")...), "nights")
	require.Len(t, o.data("assignment", "list", device), 2)
	require.Equal(t, id, o.do(append(deletion, "--yes")...)["assignment_id"])
	require.Len(t, o.data("assignment", "list", device), 1)
	o.fails(cli.ExitFailure, "There is no assignment "+id, append(deletion, "--yes")...)
	entries := o.data("audit", "list", "--object", id)
	require.Equal(t, "wrong room", entries[0]["reason"])
	require.Equal(t, "misspelt", entries[len(entries)-2]["reason"])
	require.Nil(t, entries[len(entries)-1]["reason"])
}

// TestAssignmentMove checks the moves to a free and to an occupied room.
func TestAssignmentMove(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.team()
	rooms := []string{o.device(team, "dev:1", "--name", "Dorm 1"), o.device(team, "dev:2", "--name", "Dorm 2")}
	started, moved := ago(10*24*time.Hour), ago(24*time.Hour)
	id := o.id("assignment_id", "assignment", "start", rooms[0], "--type", "athlete", "--label", "Ana", "--external-ref", "crm-7", "--at", started)
	ana := []string{"assignment", "move", id, "--to", "Dorm 2", "--team", team, "--at", moved}

	o.asks("Ana is open in Dorm 1 since "+started, "assignment", "start", "Dorm 2", "--type", "athlete", "--label", "Ana", "--external-ref", "crm-7")
	o.do("assignment", "start", "Dorm 2", "--type", "athlete", "--label", "Bea", "--at", started)
	o.fails(cli.ExitFailure, "has the open assignment", ana...)
	o.fails(cli.ExitFailure, "one of that device already", "assignment", "move", id, "--to", "Dorm 1")
	o.fails(cli.ExitFailure, "There is no device", "assignment", "move", id, "--to", "Dorm 3")
	other := o.device(o.team(), "dev:3")
	o.fails(cli.ExitFailure, "has no device "+other, "assignment", "move", id, "--to", other)

	plan := o.do(append(ana, "--if-occupied", "swap", "--dry-run")...)
	require.Contains(t, fmt.Sprint(plan["nights"]), "from Ana to Bea")
	o.do(append(ana, "--if-occupied", "swap", "--reason", "asked for it")...)
	open := func(room string) map[string]any { return o.data("assignment", "list", room)[0] }
	require.Equal(t, []any{"Ana", "crm-7", moved}, []any{open("Dorm 2")["label"], open("Dorm 2")["external_ref"], open("Dorm 2")["started_at"]})
	require.Equal(t, "Bea", open("Dorm 1")["label"])
	id, _ = open("Dorm 1")["assignment_id"].(string)
	o.do("assignment", "move", id, "--to", "Dorm 2", "--if-occupied", "end", "--old-room", "Dorm 1")
	require.Equal(t, "Bea", open("Dorm 2")["label"])
	require.Equal(t, "place", open("Dorm 1")["type"])
	id, _ = open("Dorm 1")["assignment_id"].(string)
	o.fails(cli.ExitFailure, "Only athletes move", "assignment", "move", id, "--to", "Dorm 2")
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
