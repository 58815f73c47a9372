package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// What devices send shows in the API: at once, late, and from other hardware.
func TestWhatArrivesShows(t *testing.T) {
	t.Parallel()
	j := setOut(t)
	team := j.team()
	j.key = j.id("key", "key", "create", "--team", team)
	j.scopeIsReadByDefault()
	j.measurementsAreReadings(j.device(team, "dev:1"), "dev:1")
	j.burstComesLate(j.device(team, "dev:2"), "dev:2")
	j.deviceOutlivesItsUnit(j.device(team, "dev:3"), "dev:3", "dev:4")
}

func (j *journey) scopeIsReadByDefault() {
	j.t.Helper()
	conformance.Covers(j.t, "spec 5, rule 3, default")
	require.Contains(j.t, j.get("/team"), `"scopes":["read"]`)
}

func (j *journey) object(path string) (object map[string]any) {
	j.t.Helper()
	require.NoError(j.t, json.Unmarshal([]byte(j.get(path)), &object))
	return object
}

// readings are those of a device since an instant, newest first.
func (j *journey) readings(device string, since time.Time) []map[string]any {
	j.t.Helper()
	page := j.object("/devices/" + device + "/readings?from=" + roomsensor.FormatTime(since))
	data := make([]map[string]any, len(page["data"].([]any)))
	for i, item := range page["data"].([]any) {
		data[i] = item.(map[string]any)
	}
	return data
}

// lies holds a time that was printed to lie within the bounds of a test, on whichever clock it was taken.
func (j *journey) lies(printed any, from, to time.Time) {
	j.t.Helper()
	at, ok := roomsensor.ParseTime(fmt.Sprint(printed))
	require.True(j.t, ok, printed)
	require.WithinRange(j.t, at, from.Add(-time.Minute), to.Add(time.Minute))
}

// upload sends measurements, 5 minutes apart from an instant on, of CO2 alone.
func (j *journey) upload(unit, more string, from time.Time, n int) (before, after time.Time) {
	j.t.Helper()
	measured := make([]string, n)
	for i := range measured {
		at := from.Add(time.Duration(i) * 5 * time.Minute)
		measured[i] = fmt.Sprintf(`{"measured_at":%q,"co2_ppm":%d,"temp_c":null}`, roomsensor.FormatTime(at), 400+i)
	}
	before = time.Now()
	j.feed([]string{fmt.Sprintf(`{"hardware_id":%q,%s"readings":[%s]}`, unit, more, strings.Join(measured, ","))})
	return before, time.Now()
}

// Every 5 minutes a reading, in the bucket of its time; a weak signal takes none away.
func (j *journey) measurementsAreReadings(device, unit string) {
	j.t.Helper()
	conformance.Covers(j.t, "spec 1, interval", "spec 1, convention 2", "spec 2, reading, bucket_at",
		"spec 2, reading, ingested_at", "spec 2, signal, rssi_dbm", "spec 2, signal, bars", "spec 2, signal, weak",
		"spec 2, device, signal", "spec 2, device, last_seen_at", "spec 8, measurement interval")
	path := "/devices/" + device
	require.Nil(j.t, j.object(path)["last_seen_at"])
	first := roomsensor.BucketOf(time.Now()).Add(-time.Hour)
	before, after := j.upload(unit, `"signal":{"rssi_dbm":-119,"bars":0},`, first.Add(3*time.Second), 12)

	readings := j.readings(device, first)
	require.Len(j.t, readings, 12)
	for i, reading := range readings {
		require.Equal(j.t, roomsensor.FormatTime(first.Add(time.Duration(11-i)*5*time.Minute)), reading["bucket_at"])
		require.InDelta(j.t, 400+11-i, reading["co2_ppm"], 0)
		for _, missing := range []string{"temp_c", "humidity_pct", "lux", "spl_db"} {
			require.Nil(j.t, reading[missing], "missing is null, never zero")
		}
		j.lies(reading["ingested_at"], before, after)
	}
	shown := j.object(path)
	j.lies(shown["last_seen_at"], before, after)
	require.Contains(j.t, j.get(path), `"signal":{"rssi_dbm":-119,"bars":0}`)

	j.upload(unit, `"signal":{"rssi_dbm":-71,"bars":4},`, first.Add(3*time.Second), 1)
	require.Contains(j.t, j.get(path), `"signal":{"rssi_dbm":-71,"bars":4}`, "that of the last upload")
	require.Len(j.t, j.readings(device, first), 12)
}

// A device that was away for long uploads what it kept.
func (j *journey) burstComesLate(device, unit string) {
	j.t.Helper()
	conformance.Covers(j.t, "spec 1, convention 3", "spec 1, convention 3, offline", "spec 3, status, offline to online",
		"spec 3, status, stale to online", "spec 3, status, upload", "spec 2, device, last_seen_at", "spec 2, device, status")
	path := "/devices/" + device
	require.Equal(j.t, "offline", j.object(path)["status"])
	days := roomsensor.BucketOf(time.Now()).Add(-72 * time.Hour)
	sent := 0
	for _, away := range []struct{ since, status string }{{"100 hours", "offline"}, {"2 hours", "stale"}, {"25 hours", "offline"}} {
		_, err := j.conn.Exec(j.t.Context(), `UPDATE devices SET last_seen_at = now() - $2::text::interval WHERE id = $1`, device, away.since)
		require.NoError(j.t, err)
		require.Equal(j.t, away.status, j.object(path)["status"])

		before, after := j.upload(unit, `"sent_at":"2020-01-01T00:00:00Z",`, days.Add(time.Duration(sent)*5*time.Minute), 100)
		sent += 100
		shown := j.object(path)
		require.Equal(j.t, "online", shown["status"])
		j.lies(shown["last_seen_at"], before, after)
		readings := j.readings(device, days)
		require.Len(j.t, readings, sent)
		require.Equal(j.t, roomsensor.FormatTime(days.Add(time.Duration(sent-1)*5*time.Minute)), readings[0]["bucket_at"])
		j.lies(readings[0]["ingested_at"], before, after)
		require.Equal(j.t, roomsensor.FormatTime(days), readings[sent-1]["bucket_at"])
	}
}

// New firmware comes over the air, and a new unit by hand: the device stays.
func (j *journey) deviceOutlivesItsUnit(device, unit, next string) {
	j.t.Helper()
	conformance.Covers(j.t, "spec 2, device, device_id, permanent", "spec 2, device, firmware_version", "spec 2, device, hardware_id")
	path := "/devices/" + device
	shows := func(unit string, firmware any, readings int) {
		j.t.Helper()
		shown := j.object(path)
		require.Equal(j.t, []any{device, unit, firmware}, []any{shown["device_id"], shown["hardware_id"], shown["firmware_version"]})
		require.Len(j.t, j.readings(device, time.Now().Add(-time.Hour)), readings)
	}
	first := roomsensor.BucketOf(time.Now()).Add(-30 * time.Minute)
	shows(unit, nil, 0)
	j.upload(unit, `"firmware_version":"1.9.3",`, first, 1)
	shows(unit, "1.9.3", 1)
	j.upload(unit, `"firmware_version":"2.0.0",`, first.Add(5*time.Minute), 1)
	shows(unit, "2.0.0", 2)
	j.do("device", "replace-hardware", device, "--hardware-id", next, "--at", roomsensor.FormatTime(first.Add(10*time.Minute)))
	shows(next, "2.0.0", 2)
	j.upload(next, `"firmware_version":"2.0.1",`, first.Add(10*time.Minute), 1)
	shows(next, "2.0.1", 3)
}
