package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// TestReadYourWrites checks that each API process shows a command, a PATCH or an upload as soon as it was acknowledged,
// also to a client that has an older response.
func TestReadYourWrites(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 43 a")
	e := newService(t)
	e.apis = append(e.apis, e.start("api"))
	e.receiver = e.start("ingest", "--no-worker")
	e.onEveryAPI(func(a *reader) {
		require.Equal(t, []client.Scope{client.ScopeReadWrite}, a.team().APIKey.Scopes)
		require.Empty(t, a.devices())
	})
	device := e.newDevice("dev:1", "--name", "Hall")
	e.onEveryAPI(func(a *reader) {
		require.Equal(t, "Hall", *a.devices()[0].DisplayName)
		require.Equal(t, "dev:1", a.device(device).HardwareID)
	})
	e.checkRename(device)
	assignment := e.field("assignment_id", "assignment", "start", device, "--type", "place", "--label", "Room 12")
	e.onEveryAPI(func(a *reader) {
		require.Equal(t, "Room 12", a.device(device).ActiveAssignment.Label)
		require.Nil(t, a.assignments(device)[0].EndedAt)
	})
	e.command("assignment", "end", assignment)
	e.onEveryAPI(func(a *reader) {
		require.Nil(t, a.device(device).ActiveAssignment)
		require.NotNil(t, a.assignments(device)[0].EndedAt)
	})
	e.command("device", "replace-hardware", device, "--hardware-id", "dev:2")
	e.onEveryAPI(func(a *reader) { require.Equal(t, "dev:2", a.device(device).HardwareID) })

	now := roomsensor.FormatTime(time.Now()) // After the unit was installed.
	for _, text := range []string{
		`{"hardware_id":"dev:2","readings":[{"measured_at":"` + now + `","co2_ppm":611}]}`,
		`{"hardware_id":"dev:3","readings":[{"measured_at":"` + now + `","co2_ppm":622}]}`, // An unknown unit.
	} {
		got := e.upload(text)
		require.Equal(t, http.StatusAccepted, got.status, got.body)
		e.settle()
	}
	e.onEveryAPI(func(a *reader) {
		require.Equal(t, 611.0, *a.readings(device, client.Window{})[0].CO2PPM)
		require.Contains(t, a.csv(client.Window{}), ",611,")
		require.Equal(t, client.StatusOnline, a.device(device).Status)
	})
	other := e.newDevice("dev:3")
	e.onEveryAPI(func(a *reader) { require.Empty(t, a.readings(other, client.Window{})) })
	require.Equal(t, 1, e.replay("unknown_unit"))
	e.onEveryAPI(func(a *reader) {
		require.Equal(t, 622.0, *a.readings(other, client.Window{})[0].CO2PPM)
		require.Contains(t, a.csv(client.Window{}, other), ",622,")
	})
}

// checkRename sends PATCH to one process, and reads from both.
func (e *streamEnv) checkRename(device string) {
	e.t.Helper()
	path := "/v1/devices/" + device
	for i, name := range []string{"Gym", "Attic"} {
		before := e.send(e.apis[1-i], http.MethodGet, path, e.key, "")
		_, err := e.at(e.apis[i], e.key).UpdateDevice(e.t.Context(), uuid.MustParse(device), client.DeviceChange{DisplayName: &name})
		require.NoError(e.t, err)
		e.onEveryAPI(func(a *reader) {
			require.Equal(e.t, name, *a.device(device).DisplayName)
			require.Equal(e.t, name, *a.devices()[0].DisplayName)
		})
		after := e.send(e.apis[1-i], http.MethodGet, path, e.key, "", "If-None-Match: "+before.header.Get("ETag"))
		require.Equal(e.t, 200, after.status)
	}
}

// TestStaleness checks that the live snapshot shows a commit within a second, and every response a change by SQL within
// five seconds (decision 43).
func TestStaleness(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 43 b", "decision 43 c")
	e := newService(t)
	e.apis = append(e.apis, e.start("api"))
	device := e.newDevice("dev:1")
	e.onEveryAPI(func(a *reader) {
		require.Nil(t, a.current()[0].Latest)
		require.Equal(t, "Team", a.team().Team.Name)
	})
	as := func(key string) *env {
		other := *e.env
		other.key = key
		return &other
	}
	_, key := e.newKey()
	revoked := as(key)
	revoked.onEveryAPI(func(a *reader) { require.Equal(t, "Team", a.team().Team.Name) })
	id, key := e.newKey()
	e.command("key", "revoke", id)
	restored := as(key)
	restored.onEveryAPI(func(a *reader) { a.requireCode(client.CodeAPIKeyRevoked) })
	e.exec(`INSERT INTO readings (device_id, bucket_at, co2_ppm) SELECT id, time_bucket('5 minutes', now()), 633 FROM devices`)
	e.exec(`UPDATE devices SET display_name = 'By SQL'`)
	e.exec(`UPDATE device_state SET rssi_dbm = -99`)
	e.exec(`UPDATE teams SET name = 'Renamed'`)
	e.exec(`UPDATE api_keys SET revoked_at = CASE WHEN revoked_at IS NULL THEN now() END WHERE key_id <> $1`, e.keyID)
	<-time.After(time.Second)
	e.onEveryAPI(func(a *reader) {
		shown := a.current()[0]
		require.Equal(t, 633.0, *shown.Latest.CO2PPM)
		require.Equal(t, "By SQL", *shown.DisplayName)
		require.Equal(t, client.Stat{Min: new(633.0), Max: new(633.0), Mean: new(633.0), Count: 1}, shown.Last24H.CO2PPM)
	})

	<-time.After(4 * time.Second)
	e.onEveryAPI(func(a *reader) {
		require.Equal(t, "Renamed", a.team().Team.Name)
		require.Equal(t, -99, *a.device(device).Signal.RSSIDBM)
		require.Equal(t, "By SQL", *a.devices()[0].DisplayName)
		require.Equal(t, 633.0, *a.readings(device, client.Window{})[0].CO2PPM)
		require.Contains(t, a.csv(client.Window{}), "By SQL,633,")
	})
	revoked.onEveryAPI(func(a *reader) { a.requireCode(client.CodeAPIKeyRevoked) })
	restored.onEveryAPI(func(a *reader) { require.Equal(t, "Renamed", a.team().Team.Name) })
}
