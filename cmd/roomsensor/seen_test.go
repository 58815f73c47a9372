package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// shown is what the API says of a device.
type shown struct {
	HardwareID string  `json:"hardware_id"`
	LastSeenAt *string `json:"last_seen_at"`
	Firmware   *string `json:"firmware_version"`
	Signal     struct {
		RSSI *int `json:"rssi_dbm"`
		Bars *int `json:"bars"`
	} `json:"signal"`
}

func (m *mail) shows(device string) (d shown) {
	m.t.Helper()
	require.NoError(m.t, json.Unmarshal([]byte(m.get("/devices/"+device)), &d))
	return d
}

func (m *mail) lastSeen(device string) string {
	m.t.Helper()
	d := m.shows(device)
	if d.LastSeenAt == nil {
		return ""
	}
	return *d.LastSeenAt
}

// Whatever the readings of an upload are, its arrival counts, to the
// microsecond and as the queue keeps it; what does not parse counts for nobody.
func TestLastSeenIsTheNewestArrival(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 39.1", "decision 39.2", "decision 39.4", "decision 39.6")
	m := newMail(t)
	unit, device := m.place()
	require.Empty(t, m.lastSeen(device))
	for _, readings := range []string{
		at("08:00:00", `"lux":1`), at("08:00:00", `"lux":1`), at("00:00:00", ""), "", `{"measured_at":"1970-01-01T00:00:00Z"}`, "7",
		at("08:00:00", `"lux":"x"`),
	} {
		stored := m.send(unit, "", readings)
		m.settled()
		require.Equal(t, stored, m.lastSeen(device), readings)
	}
	last := m.lastSeen(device)
	for _, text := range []string{
		"", "hello", `{"hardware_id":"` + unit + `"}`, `{"hardware_id":"` + unit + `","readings":[],"readings":[]}`,
	} {
		stored, _ := m.put(unit, text)
		m.settled()
		require.NotEqual(t, stored, last)
		require.Equal(t, last, m.lastSeen(device), text)
	}
	m.replayStream()
	require.Equal(t, last, m.lastSeen(device), "a redelivery keeps its arrival, and it never goes back")
	_, err := m.conn.Exec(t.Context(), "UPDATE devices SET last_seen_at = NULL")
	require.NoError(t, err)
	m.replayStream()
	require.Equal(t, last, m.lastSeen(device), "the arrivals are in the queue")

	text := `{"hardware_id":"` + unit + `","readings":[]}`
	first, one := m.put(unit, text)
	again, two := m.put(unit, text)
	require.Equal(t, one+1, two, "the queue drops nothing by its content")
	require.Less(t, first, again)
	m.settled()
	require.Equal(t, again, m.lastSeen(device))
}

// The newest arrival that carries a part has the say, and one that carries none
// takes nothing away.
func TestSignalAndFirmwareAreOfTheNewestThatCarriesThem(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 39.7")
	m := newMail(t)
	unit, device := m.place()
	number := func(n int) *int { return &n }
	var want shown
	for _, step := range []struct {
		more         string
		rssi, bars   *int
		firmware     string
		signalStands bool
	}{
		{"", nil, nil, "", false},
		{`"signal":{"rssi_dbm":-87,"bars":2},"firmware_version":"2.4.1",`, number(-87), number(2), "2.4.1", false},
		{"", nil, nil, "2.4.1", true},
		{`"signal":null,"firmware_version":null,`, nil, nil, "2.4.1", true},
		{`"signal":{},"firmware_version":"2.4.0",`, nil, nil, "2.4.0", true}, // A downgrade is newer.
		{`"signal":{"rssi_dbm":-120,"bars":6},"firmware_version":"no version",`, nil, nil, "2.4.0", true},
		{`"signal":{"bars":5},`, nil, number(5), "2.4.0", false},
		{`"signal":{"rssi_dbm":-60},`, number(-60), nil, "2.4.0", false},
		{`"signal":{"rssi_dbm":-60,"bars":0},`, number(-60), number(0), "2.4.0", false},
	} {
		m.send(unit, step.more, at("08:00:00", ""))
		m.settled()
		if !step.signalStands {
			want.Signal.RSSI, want.Signal.Bars = step.rssi, step.bars
		}
		got := m.shows(device)
		require.Equal(t, want.Signal, got.Signal, step.more)
		if step.firmware == "" {
			require.Nil(t, got.Firmware)
		} else {
			require.Equal(t, step.firmware, *got.Firmware, step.more)
		}
	}
	before := m.get("/devices/" + device)
	m.replayStream()
	require.Equal(t, before, m.get("/devices/"+device))
}

// A unit that moved: what it buffered goes to the device of then, and the
// device in which it sits now was seen.
func TestTheDeviceOfNowIsSeen(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 39.5", "decision 40.1")
	m := newMail(t)
	unit, old := m.place()
	moved := roomsensor.FormatTime(day.Add(8*60*60*1e9 + 1e9)) // 08:00:01.
	m.do("device", "remove-hardware", old, "--at", moved)
	next := m.device(m.team, unit, "--installed-at", moved)
	stored := m.send(unit, "", at("07:59:59", `"lux":1`), at("08:00:00.999999", `"lux":2`), at("08:00:01", `"lux":3`), at("08:04:59", `"lux":4`))
	m.settled()
	require.Equal(t, []string{"07:55 - - - 1 -", "08:00 - - - 2 -"}, m.served(old))
	require.Equal(t, []string{"08:00 - - - 4 -"}, m.served(next))
	require.Empty(t, m.lastSeen(old))
	require.Equal(t, stored, m.lastSeen(next))
}

// A replay carries the first arrival along: for the time that is plausible, and
// for when the device was seen.
func TestReplayHasItsFirstArrival(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 39.3", "decision 39.6", "decision 41.11")
	m := newMail(t)
	first := m.send("dev:7", `"signal":{"rssi_dbm":-70,"bars":3},"firmware_version":"1.0",`, at("08:00:00", `"lux":1`))
	second := m.send("dev:7", "", at("08:05:00", `"lux":2`))
	m.settled()
	rejects := m.data("rejects", "list", "--reason", "unknown_unit")
	require.Len(t, rejects, 2)
	require.Equal(t, []any{second, first}, []any{rejects[0]["received_at"], rejects[1]["received_at"]})
	device := m.device(m.team, "dev:7")
	for i, want := range []string{second, second} { // The newer first: the older does not set it back.
		r := m.run("rejects", "replay", rejects[i]["id"].(string))
		require.Equal(t, "{\"replayed\":1}\n", r.out, r.err)
		require.Equal(t, want, m.lastSeen(device))
	}
	got := m.shows(device)
	require.Equal(t, []any{-70, 3, "1.0"}, []any{*got.Signal.RSSI, *got.Signal.Bars, *got.Firmware}, "of the newest that carries them")
	require.Equal(t, "08:00 - - - 1 -\n08:05 - - - 2 -", strings.Join(m.served(device), "\n"))
}

// Ten minutes past the arrival are plausible to the microsecond, however long
// after it an upload is judged.
func TestTenMinutesPastTheArrival(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 39.3", "decision 41.2")
	m := newMail(t)
	unit, device := m.place()
	_, err := m.conn.Exec(t.Context(), `INSERT INTO rejected_uploads (received_at, stream_sequence, reason, detail, hardware_id, payload)
		VALUES ($1, 1, 'unknown_unit', 'It was unknown.', $2, $3)`, day.Add(8*60*60*1e9), unit,
		[]byte(`{"hardware_id":"`+unit+`","readings":[`+at("08:10:00", `"lux":1`)+","+at("08:10:00.000001", `"lux":2`)+","+at("08:15:00", "")+`]}`))
	require.NoError(t, err)
	require.Equal(t, exitOK, m.run("rejects", "replay", "--reason", "unknown_unit").code)
	require.Equal(t, []string{"08:10 - - - 1 -"}, m.served(device))
	require.Equal(t, roomsensor.FormatTime(day.Add(8*60*60*1e9)), m.lastSeen(device))
}
