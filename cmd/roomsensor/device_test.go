package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
)

func TestDevices(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team, other := o.team(), o.team()
	require.Empty(t, o.data("device", "list", "--team", team))

	bare := o.do("device", "create", "--team", team, "--hardware-id", "dev:1")
	require.Equal(t, map[string]any{
		"device_id": bare["device_id"], "team_id": team, "hardware_id": "dev:1", "alias": nil, "sampling": "whole", "keep_days": nil, "display_name": nil,
		"firmware_version": nil, "metadata": map[string]any{}, "status": "offline", "last_seen_at": nil,
		"signal": map[string]any{"rssi_dbm": nil, "bars": nil}, "active_assignment": nil,
	}, bare)
	full := o.do("device", "create", "--team", team, "--hardware-id", "dev:00000000000000000002", "--name", "Bedroom 1",
		"--metadata", "crm.id=a=b;c,d", "--metadata", "empty=", "--installed-at", "2024-02-29T23:59:59Z")
	require.Equal(t, "Bedroom 1", full["display_name"])
	require.Equal(t, map[string]any{"crm.id": "a=b;c,d", "empty": ""}, full["metadata"])

	want := []map[string]any{bare, full}
	slices.SortFunc(want, func(a, b map[string]any) int {
		return strings.Compare(a["device_id"].(string), b["device_id"].(string))
	})
	require.Equal(t, want, o.data("device", "list", "--team", team))
	require.Empty(t, o.data("device", "list", "--team", other))
}

func TestDeviceErrors(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team, other := o.team(), o.team()
	device := o.device(team, "dev:1")
	create := func(more ...string) []string { return append([]string{"device", "create", "--team", team}, more...) }
	var tooMany []string
	for i := range 51 {
		tooMany = append(tooMany, "--metadata", fmt.Sprintf("k%d=v", i))
	}
	tests := []struct {
		code int
		says string
		args []string
	}{
		{cli.ExitFailure, "There is no team " + unknown, []string{"device", "create", "--team", unknown, "--hardware-id", "dev:2"}},
		{cli.ExitFailure, "Unit dev:1 is installed in device " + device, []string{"device", "create", "--team", other, "--hardware-id", "dev:1"}},
		{cli.ExitFailure, "--installed-at 2999-01-01T00:00:00Z is in the future", create("--hardware-id", "dev:2", "--installed-at", "2999-01-01T00:00:00Z")},
		{cli.ExitFailure, "There is no team", []string{"device", "list", "--team", unknown}},
		{cli.ExitUsage, "--hardware-id", create()},
		{cli.ExitUsage, "is not a hardware id", create("--hardware-id", "1")},
		{cli.ExitUsage, "must not be empty", create("--hardware-id", "dev:2", "--name", "")},
		{cli.ExitUsage, "is not KEY=VALUE", create("--hardware-id", "dev:2", "--metadata", "k")},
		{cli.ExitUsage, "must have a key of 1 to 64", create("--hardware-id", "dev:2", "--metadata", "a b=v")},
		{cli.ExitUsage, "has 501 characters", create("--hardware-id", "dev:2", "--metadata", "k="+strings.Repeat("x", 501))},
		{cli.ExitUsage, "the key k is given twice", create("--hardware-id", "dev:2", "--metadata", "k=1", "--metadata", "k=1")},
		{cli.ExitUsage, "has 51 keys; at most 50", create(append([]string{"--hardware-id", "dev:2"}, tooMany...)...)},
		{cli.ExitUsage, "is not a UTC time", create("--hardware-id", "dev:2", "--installed-at", "yesterday")},
		{cli.ExitUsage, "--team", []string{"device", "list"}},
	}
	for _, test := range tests {
		o.fails(test.code, test.says, test.args...)
	}
	require.Len(t, o.data("device", "list", "--team", team), 1)
}

func TestDeviceHardware(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.team()
	device := o.device(team, "dev:1")

	removed := o.do("device", "remove-hardware", device, "--at", "2026-01-01T00:00:00Z")
	require.Equal(t, "dev:1", removed["hardware_id"], "the last unit is shown")
	o.fails(cli.ExitFailure, "No unit is installed in device "+device, "device", "remove-hardware", device)

	o.fails(cli.ExitFailure, "Unit dev:1 was installed in device "+device+" until 2026-01-01T00:00:00Z",
		"device", "create", "--team", team, "--hardware-id", "dev:1", "--installed-at", "2025-12-31T23:00:00Z")
	second := o.device(team, "dev:1", "--installed-at", "2026-01-01T00:00:00Z")
	require.NotEqual(t, device, second)

	replaced := o.do("device", "replace-hardware", second, "--hardware-id", "dev:2", "--at", "2026-02-01T00:00:00Z")
	require.Equal(t, "dev:2", replaced["hardware_id"])
	require.Equal(t, second, replaced["device_id"])
	o.fails(cli.ExitFailure, "Unit dev:1 was installed in device "+second+" until 2026-02-01T00:00:00Z",
		"device", "create", "--team", team, "--hardware-id", "dev:1", "--installed-at", "2026-01-15T00:00:00Z")
	o.do("device", "replace-hardware", device, "--hardware-id", "dev:1") // Free since February.

	o.fails(cli.ExitFailure, "Unit dev:2 is already installed in device "+second, "device", "replace-hardware", second, "--hardware-id", "dev:2")
	o.fails(cli.ExitFailure, "roomsensor device remove-hardware "+second, "device", "replace-hardware", device, "--hardware-id", "dev:2")
	o.fails(cli.ExitFailure, "Choose a later time", "device", "replace-hardware", second, "--hardware-id", "dev:3", "--at", "2026-01-15T00:00:00Z")
	o.fails(cli.ExitFailure, "Choose a later time", "device", "remove-hardware", second, "--at", "2026-02-01T00:00:00Z")
	o.fails(cli.ExitFailure, "is in the future", "device", "remove-hardware", second, "--at", "2999-01-01T00:00:00Z")
	o.fails(cli.ExitFailure, "is in the future", "device", "replace-hardware", second, "--hardware-id", "dev:3", "--at", "2999-01-01T00:00:00Z")
	o.fails(cli.ExitFailure, "There is no device "+unknown, "device", "replace-hardware", unknown, "--hardware-id", "dev:3")
	o.fails(cli.ExitFailure, "There is no device "+unknown, "device", "remove-hardware", unknown)
	o.fails(cli.ExitUsage, "is not a hardware id", "device", "replace-hardware", second, "--hardware-id", "3")
	o.fails(cli.ExitUsage, "--hardware-id", "device", "replace-hardware", second)
	o.fails(cli.ExitUsage, "is not a UTC time", "device", "remove-hardware", second, "--at", "2026-02-30T00:00:00Z")
}

func TestDeviceRetire(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.team()
	device := o.device(team, "dev:1", "--name", "Gym", "--installed-at", "2026-01-01T00:00:00Z")
	kept := o.device(team, "dev:2")
	o.do("assignment", "start", "Gym", "--type", "place", "--label", "Gym", "--at", "2026-01-01T00:00:00Z", "--yes")

	retired := o.do("device", "retire", "Gym", "--team", team)
	require.Equal(t, device, retired["device_id"])
	require.Nil(t, retired["active_assignment"])
	require.NotEmpty(t, retired["retired_at"])
	require.Equal(t, retired, o.do("device", "retire", device), "the second time changes nothing")
	require.Equal(t, []map[string]any{retired}, o.data("device", "list", "--team", team, "--retired"))
	listed := o.data("device", "list", "--team", team)
	require.Len(t, listed, 1)
	require.Equal(t, kept, listed[0]["device_id"])
	o.fails(cli.ExitFailure, "Unit dev:1 is not installed in a device", "device", "show", "dev:1")
	o.fails(cli.ExitFailure, "There is no device "+unknown, "device", "retire", unknown)

	back := o.do("device", "replace-hardware", device, "--hardware-id", "dev:1")
	require.NotContains(t, back, "retired_at")
	require.Len(t, o.data("device", "list", "--team", team), 2)
}

func TestDeviceNames(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team, other := o.team(), o.team()
	gym := o.device(team, "dev:1", "--name", "Gym")
	hall := o.device(team, "dev:2", "--name", "Hall")
	require.Equal(t, gym, o.do("device", "show", "Gym")["device_id"])
	require.ElementsMatch(t, o.data("device", "list", "--team", team), []map[string]any{o.do("device", "show", gym), o.do("device", "show", hall)})
	require.Equal(t, gym, o.do("device", "show", gym, "--team", team)["device_id"])
	o.fails(cli.ExitFailure, "There is no device "+gym, "device", "show", gym, "--team", other)
	o.fails(cli.ExitFailure, "There is no device "+unknown, "device", "show", unknown)
	o.fails(cli.ExitFailure, `There is no device with the name "gym"`, "device", "show", "gym")

	twin := o.device(other, "dev:3", "--name", "Gym")
	ids := []string{gym + " (unit dev:1, team " + team + ")", twin + " (unit dev:3, team " + other + ")"}
	slices.Sort(ids)
	o.fails(cli.ExitFailure, `Several devices have the name "Gym": `+strings.Join(ids, ", ")+". Give the id", "device", "show", "Gym")
	require.Equal(t, twin, o.do("device", "show", "Gym", "--team", other)["device_id"])
	o.fails(cli.ExitFailure, `There is no device of this team with the name "Hall"`, "device", "show", "Hall", "--team", other)

	renamed := o.do("device", "rename", twin, "--name", "Pool")
	require.Equal(t, "Pool", renamed["display_name"])
	require.Equal(t, renamed, o.do("device", "show", "Pool"))
	require.Equal(t, other, renamed["team_id"])
	o.fails(cli.ExitFailure, "There is no device "+unknown, "device", "rename", unknown, "--name", "x")

	// The unit moves from the gym to the hall. The gym still shows it as its last one.
	require.Equal(t, gym, o.do("device", "show", "dev:1")["device_id"])
	o.do("device", "remove-hardware", "dev:1")
	o.fails(cli.ExitFailure, "Unit dev:1 is not installed in a device", "device", "show", "dev:1")
	o.do("device", "replace-hardware", "Hall", "--hardware-id", "dev:1")
	require.Equal(t, hall, o.do("device", "show", "dev:1")["device_id"])
	o.fails(cli.ExitFailure, "Unit dev:1 is not installed in a device of this team", "device", "show", "dev:1", "--team", other)
	assignment := o.do("assignment", "start", "Hall", "--team", team, "--type", "place", "--label", "x")
	require.Equal(t, []map[string]any{assignment}, o.data("assignment", "list", "Hall"))
}
