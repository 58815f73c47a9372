package e2e_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// lastSeen returns last_seen_at of a device as the API prints it, or nil.
func (e *streamEnv) lastSeen(device string) any {
	e.t.Helper()
	if at := e.api().device(device).LastSeenAt; at != nil {
		return roomsensor.FormatTime(*at)
	}
	return nil
}

// TestLastSeen checks that last_seen_at is the newest arrival of an upload that can be parsed, to the microsecond,
// whatever its readings are.
func TestLastSeen(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 39 a", "decision 39 b", "decision 39 d", "decision 39 f")
	e := newService(t)
	unit, device := e.newUnit()
	require.Nil(t, e.lastSeen(device))
	for _, readings := range []string{
		reading("08:00:00", `"lux":1`), reading("08:00:00", `"lux":1`), reading("00:00:00", ""), "", `{"measured_at":"1970-01-01T00:00:00Z"}`, "7",
		reading("08:00:00", `"lux":"x"`),
	} {
		arrival := e.publishReadings(unit, "", readings)
		e.settle()
		require.Equal(t, arrival, e.lastSeen(device), readings)
	}
	last := e.lastSeen(device)
	for _, text := range []string{
		"", "hello", `{"hardware_id":"` + unit + `"}`, `{"hardware_id":"` + unit + `","readings":[],"readings":[]}`,
	} {
		arrival, _ := e.publish(unit, text)
		e.settle()
		require.NotEqual(t, arrival, last)
		require.Equal(t, last, e.lastSeen(device), text)
	}
	e.replayStream()
	require.Equal(t, last, e.lastSeen(device), "a redelivery keeps the arrival")
	e.exec("UPDATE device_state SET last_seen_at = NULL")
	e.replayStream()
	require.Equal(t, last, e.lastSeen(device), "the arrivals are in the stream")

	text := `{"hardware_id":"` + unit + `","readings":[]}`
	first, sequence := e.publish(unit, text)
	again, next := e.publish(unit, text)
	require.Equal(t, sequence+1, next, "the stream drops no message because of its content")
	require.Less(t, first, again)
	e.settle()
	require.Equal(t, again, e.lastSeen(device))
}

// TestSignalAndFirmware checks that signal and firmware are those of the newest arrival that carries them.
func TestSignalAndFirmware(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 39 g")
	e := newService(t)
	unit, device := e.newUnit()
	for _, step := range []struct{ sent, signal, firmware string }{
		{``, `{"rssi_dbm":null,"bars":null}`, `null`},
		{`"signal":{"rssi_dbm":-87,"bars":2},"firmware_version":"2.4.1",`, `{"rssi_dbm":-87,"bars":2}`, `"2.4.1"`},
		{`"signal":null,"firmware_version":null,`, `{"rssi_dbm":-87,"bars":2}`, `"2.4.1"`},
		{`"signal":{},"firmware_version":"2.4.0",`, `{"rssi_dbm":-87,"bars":2}`, `"2.4.0"`}, // A downgrade is newer.
		{`"signal":{"rssi_dbm":-120,"bars":6},"firmware_version":"no version",`, `{"rssi_dbm":-87,"bars":2}`, `"2.4.0"`},
		{`"signal":{"rssi_dbm":-60},`, `{"rssi_dbm":-60,"bars":null}`, `"2.4.0"`},
	} {
		e.publishReadings(unit, step.sent, reading("08:00:00", ""))
		e.settle()
		shown := e.api().device(device)
		signal, err := json.Marshal(shown.Signal)
		require.NoError(t, err)
		require.JSONEq(t, step.signal, string(signal), step.sent)
		firmware, err := json.Marshal(shown.FirmwareVersion)
		require.NoError(t, err)
		require.JSONEq(t, step.firmware, string(firmware), step.sent)
	}
	before := e.api().device(device)
	e.replayStream()
	require.Equal(t, before, e.api().device(device))
}

// TestMovedUnit checks that buffered readings of a unit belong to the device in which it was at the time, [from, to),
// and that an upload makes the device in which the unit is now seen.
func TestMovedUnit(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 39 e", "decision 40 a", "decision 40 c")
	e := newService(t)
	at := func(clock string) string { return day.Format(time.DateOnly) + "T" + clock + "Z" }

	unit, old := e.newUnit()
	e.command("device", "remove-hardware", old, "--at", at("08:00:01"))
	next := e.newDevice(unit, "--installed-at", at("08:00:01"))
	arrival := e.publishReadings(unit, "", reading("07:59:59", `"lux":1`), reading("08:00:00.999999", `"lux":2`),
		reading("08:00:01", `"lux":3`), reading("08:04:59", `"lux":4`))
	e.settle()
	require.Equal(t, []string{"07:55 - - - 1 -", "08:00 - - - 2 -"}, e.served(old))
	require.Equal(t, []string{"08:00 - - - 4 -"}, e.served(next))
	require.Nil(t, e.lastSeen(old))
	require.Equal(t, arrival, e.lastSeen(next))

	device := e.newDevice("dev:11", "--installed-at", at("06:00:00"))
	e.command("device", "replace-hardware", device, "--hardware-id", "dev:12", "--at", at("08:02:00"))
	e.command("device", "remove-hardware", device, "--at", at("09:00:00"))
	for i, unit := range []string{"dev:11", "dev:12"} {
		values := []string{`"co2_ppm":1`, `"co2_ppm":2`}[i]
		e.publishReadings(unit, "", reading("05:59:59.999999", values), reading("06:00:00", values), reading("08:01:59.999999", values),
			reading("08:02:00", values), reading("08:59:59.999999", values), reading("09:00:00", values))
	}
	e.settle()
	require.Equal(t, []string{"06:00 1 - - - -", "08:00 2 - - - -", "08:55 2 - - - -"}, e.served(device))
	require.Equal(t, map[string]string{"not_installed": `{"hardware_id":"dev:11","readings":[` +
		reading("05:59:59.999999", `"co2_ppm":1`) + "," + reading("08:02:00", `"co2_ppm":1`) + "," +
		reading("08:59:59.999999", `"co2_ppm":1`) + "," + reading("09:00:00", `"co2_ppm":1`) + "]}"}, e.keptPayloads("dev:11"))
	require.Nil(t, e.lastSeen(device), "the units are in no device now")
	require.Equal(t, "dev:12", e.api().device(device).HardwareID, "the last unit")
	require.True(t, slices.ContainsFunc(e.api().current(), func(d client.CurrentDevice) bool { return d.HardwareID == "dev:12" }))
}

// TestUnitInOneDevice checks that a unit is in one device at a time, by command and by SQL, whichever teams own the
// devices.
func TestUnitInOneDevice(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 40 b")
	e := newService(t)
	other := e.newTeam(t)
	one, two := e.newDevice("dev:1"), other.newDevice("dev:2")
	for _, command := range [][]string{
		{"device", "create", "--team", other.team, "--hardware-id", "dev:1"},
		{"device", "replace-hardware", two, "--hardware-id", "dev:1", "--at", "2020-01-01T00:00:00Z"},
	} {
		r := e.run(nil, command...)
		require.Equal(t, 1, r.code, "%v: %s", command, r.stderr)
		require.Contains(t, r.stderr, "dev:", command)
	}
	for _, sql := range []string{
		"INSERT INTO device_hardware (hardware_id, device_id, installed_at) VALUES ('dev:1', '" + two + "', now())",
		"INSERT INTO device_hardware (hardware_id, device_id, removed_at) VALUES ('dev:3', '" + one + "', '2015-01-01')",
	} {
		_, err := e.sql.Exec(t.Context(), sql)
		require.ErrorContains(t, err, "exclusion constraint")
	}
	e.publishReadings("dev:1", "", reading("08:00:00", `"lux":1`))
	e.settle()
	require.Equal(t, []string{"08:00 - - - 1 -"}, e.served(one))

	const later = "2020-01-01T00:00:00Z"
	e.command("device", "remove-hardware", one, "--at", later)
	e.command("device", "remove-hardware", two, "--at", later)
	e.command("device", "replace-hardware", two, "--hardware-id", "dev:1", "--at", later)
	require.Equal(t, "dev:1", e.api().device(one).HardwareID, "its last unit, which a device of another team has now")
}

// TestReplayKeepsArrival checks that a replay uses the first arrival: for last_seen_at, and for the limit of 10 minutes
// after the arrival, to the microsecond.
func TestReplayKeepsArrival(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 39 c", "decision 39 f", "decision 41 a 2", "decision 41 k 1")
	e := newService(t)
	first := e.publishReadings("dev:7", `"signal":{"rssi_dbm":-70,"bars":3},"firmware_version":"1.0",`, reading("08:00:00", `"lux":1`))
	second := e.publishReadings("dev:7", "", reading("08:05:00", `"lux":2`))
	e.settle()
	rejects := e.list("rejects", "list", "--reason", "unknown_unit")
	require.Len(t, rejects, 2)
	require.Equal(t, []any{second, first}, []any{rejects[0]["received_at"], rejects[1]["received_at"]})
	device := e.newDevice("dev:7")
	for _, reject := range rejects { // The newest first: the older one does not set last_seen_at back.
		require.InDelta(t, 1, e.command("rejects", "replay", reject["id"].(string))["replayed"], 0)
		require.Equal(t, second, e.lastSeen(device))
	}
	shown := e.api().device(device)
	require.Equal(t, client.Signal{RSSIDBM: new(-70), Bars: new(3)}, shown.Signal, "of the newest upload that carries it")
	require.Equal(t, "1.0", *shown.FirmwareVersion)
	require.Equal(t, []string{"08:00 - - - 1 -", "08:05 - - - 2 -"}, e.served(device))

	unit, device := e.newUnit()
	arrival := day.Add(8 * time.Hour)
	e.exec(`INSERT INTO rejected_uploads (received_at, stream_sequence, reason, detail, hardware_id, payload)
		VALUES ($1, 1, 'not_installed', 'It was in no device.', $2, $3)`, arrival, unit, []byte(`{"hardware_id":"`+unit+`","readings":[`+
		reading("08:10:00", `"lux":1`)+","+reading("08:10:00.000001", `"lux":2`)+","+reading("08:15:00", "")+`]}`))
	e.replay("not_installed")
	require.Equal(t, []string{"08:10 - - - 1 -"}, e.served(device))
	require.Equal(t, roomsensor.FormatTime(arrival), e.lastSeen(device))
}
