package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
)

// Units that were swapped send what they buffered: each reading goes to the
// device of its time, [from, to).
func TestReadingsGoWhereTheUnitWas(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 40.1", "decision 40.3")
	m := newMail(t)
	on := day.Format("2006-01-02")
	device := m.device(m.team, "dev:1", "--installed-at", on+"T06:00:00Z")
	m.do("device", "replace-hardware", device, "--hardware-id", "dev:2", "--at", on+"T08:02:00Z")
	m.do("device", "remove-hardware", device, "--at", on+"T09:00:00Z")
	require.Equal(t, "dev:2", m.shows(device).HardwareID, "the last one")
	for i, unit := range []string{"dev:1", "dev:2"} {
		values := []string{`"co2_ppm":1`, `"co2_ppm":2`}[i]
		m.send(unit, "", at("05:59:59.999999", values), at("06:00:00", values), at("08:01:59.999999", values), at("08:02:00", values),
			at("08:59:59.999999", values), at("09:00:00", values))
	}
	m.settled()
	require.Equal(t, []string{"06:00 1 - - - -", "08:00 2 - - - -", "08:55 2 - - - -"}, m.served(device))
	require.Len(t, m.rejects("dev:1"), 1)
	require.Equal(t, `{"hardware_id":"dev:1","readings":[`+at("05:59:59.999999", `"co2_ppm":1`)+","+at("08:02:00", `"co2_ppm":1`)+","+
		at("08:59:59.999999", `"co2_ppm":1`)+","+at("09:00:00", `"co2_ppm":1`)+"]}", m.rejects("dev:1")["not_installed"])
	require.Empty(t, m.lastSeen(device), "the units sit nowhere now")
	require.Equal(t, "dev:2", m.shows(device).HardwareID)
	require.Contains(t, m.get("/devices/current"), `"hardware_id":"dev:2"`)
}

// Two at a time there are not, neither by command nor in the tables, whichever
// teams the devices are of.
func TestOneUnitInOneDeviceAtATime(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 40.2")
	m := newMail(t)
	other := m.journey.team()
	one, two := m.device(m.team, "dev:1"), m.device(other, "dev:2")
	for _, command := range [][]string{
		{"device", "create", "--team", other, "--hardware-id", "dev:1"},
		{"device", "create", "--team", other, "--hardware-id", "dev:1", "--installed-at", "2020-01-01T00:00:00Z"},
		{"device", "replace-hardware", one, "--hardware-id", "dev:2"},
		{"device", "replace-hardware", two, "--hardware-id", "dev:1", "--at", "2020-01-01T00:00:00Z"},
	} {
		m.fails(exitFailure, "dev:", command...)
	}
	for _, sql := range []string{
		"INSERT INTO device_hardware (hardware_id, device_id, installed_at) VALUES ('dev:1', '" + two + "', now())",
		"INSERT INTO device_hardware (hardware_id, device_id, removed_at) VALUES ('dev:3', '" + one + "', '2015-01-01')",
	} {
		_, err := m.conn.Exec(t.Context(), sql)
		require.ErrorContains(t, err, "exclusion constraint")
	}
	require.Equal(t, "dev:1", m.shows(one).HardwareID)
	m.send("dev:1", "", at("08:00:00", `"lux":1`))
	m.settled()
	require.Equal(t, []string{"08:00 - - - 1 -"}, m.served(one))

	m.do("device", "remove-hardware", one, "--at", "2020-01-01T00:00:00Z")
	m.do("device", "remove-hardware", two, "--at", "2020-01-01T00:00:00Z")
	m.do("device", "replace-hardware", two, "--hardware-id", "dev:1", "--at", "2020-01-01T00:00:00Z")
	require.Equal(t, "dev:1", m.shows(one).HardwareID, "its last one, which another team's device has now")
}
