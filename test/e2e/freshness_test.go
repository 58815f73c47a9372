package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// requireEverywhere checks a status and a part of the body on every API process.
func (e *streamEnv) requireEverywhere(path string, status int, part string) {
	e.t.Helper()
	for _, api := range e.apis {
		got := e.send(api, http.MethodGet, "/v1"+path, e.key, "")
		require.Equal(e.t, status, got.status, got.body)
		require.Contains(e.t, got.body, part, path)
	}
}

// TestReadYourWrites checks that each API process shows a command, a PATCH or an upload as soon as it was acknowledged,
// also to a client that has an older response.
func TestReadYourWrites(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 43 a")
	e := newService(t)
	e.apis = append(e.apis, e.start("api"))
	e.receiver = e.start("ingest", "--no-worker")
	e.requireEverywhere("/team", 200, `"read_write"`)
	e.requireEverywhere("/devices", 200, `{"data":[],`)
	device := e.newDevice("dev:1", "--name", "Hall")
	path := "/devices/" + device
	e.requireEverywhere("/devices", 200, `"Hall"`)
	e.requireEverywhere(path, 200, `"hardware_id":"dev:1"`)
	for i, name := range []string{"Gym", "Attic"} { // PATCH on one process, GET on both.
		before := e.send(e.apis[1-i], http.MethodGet, "/v1"+path, e.key, "")
		got := e.send(e.apis[i], http.MethodPatch, "/v1"+path, e.key, `{"display_name":"`+name+`"}`, "Content-Type: application/json")
		require.Equal(t, 200, got.status, got.body)
		e.requireEverywhere(path, 200, name)
		e.requireEverywhere("/devices", 200, name)
		after := e.send(e.apis[1-i], http.MethodGet, "/v1"+path, e.key, "", "If-None-Match: "+before.header.Get("ETag"))
		require.Equal(t, 200, after.status)
	}
	assignment := e.field("assignment_id", "assignment", "start", device, "--type", "place", "--label", "Room 12")
	e.requireEverywhere(path, 200, `"label":"Room 12"`)
	e.requireEverywhere(path+"/assignments", 200, `"ended_at":null`)
	e.command("assignment", "end", assignment)
	e.requireEverywhere(path, 200, `"active_assignment":null`)
	e.requireEverywhere(path+"/assignments", 200, `"ended_at":"`)
	e.command("device", "replace-hardware", device, "--hardware-id", "dev:2")
	e.requireEverywhere(path, 200, `"hardware_id":"dev:2"`)

	now := roomsensor.FormatTime(time.Now()) // After the unit was installed.
	for _, text := range []string{
		`{"hardware_id":"dev:2","readings":[{"measured_at":"` + now + `","co2_ppm":611}]}`,
		`{"hardware_id":"dev:3","readings":[{"measured_at":"` + now + `","co2_ppm":622}]}`, // An unknown unit.
	} {
		got := e.upload(text)
		require.Equal(t, http.StatusAccepted, got.status, got.body)
		e.settle()
	}
	e.requireEverywhere(path+"/readings", 200, `"co2_ppm":611`)
	e.requireEverywhere("/readings.csv", 200, ",611,")
	e.requireEverywhere(path, 200, `"status":"online"`)
	other := e.newDevice("dev:3")
	e.requireEverywhere("/devices/"+other+"/readings", 200, `"data":[]`)
	require.Equal(t, 1, e.replay("unknown_unit"))
	e.requireEverywhere("/devices/"+other+"/readings", 200, `"co2_ppm":622`)
	e.requireEverywhere("/readings.csv?devices="+other, 200, ",622,")
}

// TestStaleness checks that the live snapshot shows a commit within a second, and every response a change by SQL within
// five seconds (decision 43).
func TestStaleness(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 43 b", "decision 43 c")
	e := newService(t)
	e.apis = append(e.apis, e.start("api"))
	device := e.newDevice("dev:1")
	e.requireEverywhere("/devices/current", 200, `"latest":null`)
	e.requireEverywhere("/team", 200, `"name":"Team"`)
	as := func(key string) *streamEnv {
		client := *e.env
		client.key = key
		return &streamEnv{env: &client}
	}
	_, key := e.newKey()
	revoked := as(key)
	revoked.requireEverywhere("/team", 200, `"name":"Team"`)
	id, key := e.newKey()
	e.command("key", "revoke", id)
	restored := as(key)
	restored.requireEverywhere("/team", 401, `"api_key_revoked"`)
	e.exec(`INSERT INTO readings (device_id, bucket_at, co2_ppm) SELECT id, time_bucket('5 minutes', now()), 633 FROM devices`)
	e.exec(`UPDATE devices SET display_name = 'By SQL', rssi_dbm = -99`)
	e.exec(`UPDATE teams SET name = 'Renamed'`)
	e.exec(`UPDATE api_keys SET revoked_at = CASE WHEN revoked_at IS NULL THEN now() END WHERE key_id <> $1`, e.keyID)
	<-time.After(time.Second)
	e.requireEverywhere("/devices/current", 200, `"co2_ppm":633`)
	e.requireEverywhere("/devices/current", 200, `"By SQL"`)
	e.requireEverywhere("/devices/current", 200, `"co2_ppm":{"min":633,"max":633,"mean":633,"count":1}`)

	<-time.After(4 * time.Second)
	e.requireEverywhere("/team", 200, `"Renamed"`)
	e.requireEverywhere("/devices/"+device, 200, `"rssi_dbm":-99`)
	e.requireEverywhere("/devices", 200, `"By SQL"`)
	e.requireEverywhere("/devices/"+device+"/readings", 200, `"co2_ppm":633`)
	e.requireEverywhere("/readings.csv", 200, "By SQL,633,")
	revoked.requireEverywhere("/team", 401, `"api_key_revoked"`)
	restored.requireEverywhere("/team", 200, `"Renamed"`)
}
