package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// TestDevices compares devices and assignments with golden files: one with a value in every field, and one with none.
func TestDevices(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 9, rule 4, active_assignment", "spec 9, rule 4, history", "spec 4, assignments, list", "spec 4, assignments, items",
		"spec 4, devices, active_assignment", "spec 4, patch, response")
	f := setup(t)
	f.fillDevice(t)
	conformance.Covers(t, "spec 2, device, device_id, form", "spec 2, device, hardware_id, form", "spec 2, device, display_name, form",
		"spec 2, device, metadata, form", "spec 2, device, signal", "spec 2, assignment, embedded", "spec 2, assignment, history",
		"spec 2, assignment, external_ref", "spec 2, assignment, assignment_id", "spec 2, assignment, type", "spec 2, assignment, label",
		"spec 2, assignment, home_or_travel", "spec 2, assignment, started_at", "spec 2, assignment, ended_at")
	requireGolden(t, "device.json.golden", f.get(t, devicePath).body)
	requireGolden(t, "devices.json.golden", f.get(t, "/devices").body)
	requireGolden(t, "assignments.json.golden", f.get(t, assignmentsPath).body)
	full, bare := decode[item](t, f.get(t, devicePath)), decode[item](t, f.get(t, "/devices/"+testID(0xde, 2).String()))
	require.Equal(t, []item{full, bare}, f.items(t, "/devices"))
	full["display_name"] = "Hall"
	require.Equal(t, full, decode[item](t, f.patch(t, `{"display_name":"Hall"}`)))
}

// deviceBodies returns all bodies that show the fixture's device, that of PATCH included.
func (f *fixture) deviceBodies(t *testing.T) []string {
	t.Helper()
	return []string{
		string(f.get(t, devicePath).body), string(f.get(t, "/devices").body), string(f.get(t, "/devices/current").body),
		string(f.patch(t, `{"metadata":{}}`).body),
	}
}

func TestDeviceSignal(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 14 a", "decision 14 b")
	f := setup(t)
	for set, want := range map[string]string{
		"NULL, NULL": `"signal":{"rssi_dbm":null,"bars":null}`,
		"-113, NULL": `"signal":{"rssi_dbm":-113,"bars":null}`,
		"NULL, 3":    `"signal":{"rssi_dbm":null,"bars":3}`,
		"0, 0":       `"signal":{"rssi_dbm":0,"bars":0}`,
		"-51, 5":     `"signal":{"rssi_dbm":-51,"bars":5}`,
	} {
		f.exec(t, `UPDATE device_state SET (rssi_dbm, signal_bars) = (`+set+`)`)
		for _, body := range f.deviceBodies(t) {
			require.Contains(t, body, want)
		}
	}
	for _, bars := range []string{"-1", "6"} {
		_, err := f.sql.Exec(t.Context(), `UPDATE device_state SET signal_bars = `+bars)
		require.ErrorContains(t, err, "check constraint")
	}
}

func TestDeviceStatus(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, tc := range []struct {
		covers []string
		age    time.Duration
		want   roomsensor.Status
	}{
		{[]string{"decision 16 a"}, -time.Minute, roomsensor.Online},
		{[]string{"decision 16 a", "spec 3, status, online"}, 0, roomsensor.Online},
		{[]string{"decision 16 a"}, time.Hour - time.Microsecond, roomsensor.Online},
		{[]string{"decision 16 b", "spec 3, status, stale"}, time.Hour, roomsensor.Stale},
		{[]string{"decision 16 b"}, day, roomsensor.Stale},
		{[]string{"decision 16 c", "spec 3, status, offline"}, day + time.Microsecond, roomsensor.Offline},
		{[]string{"decision 16 c"}, 10_000 * day, roomsensor.Offline},
	} {
		conformance.Covers(t, tc.covers...)
		f.exec(t, `UPDATE device_state SET last_seen_at = $1`, start.Add(-tc.age))
		for _, body := range f.deviceBodies(t) {
			require.Contains(t, body, `"status":"`+string(tc.want)+`"`, "%s", tc.age)
		}
	}
	conformance.Covers(t, "spec 3, status, never_reported")
	f.exec(t, `UPDATE device_state SET last_seen_at = NULL`)
	for _, body := range f.deviceBodies(t) {
		require.Contains(t, body, `"status":"offline","last_seen_at":null`)
	}
	// The status changes as time passes, without an upload.
	conformance.Covers(t, "spec 3, status, online_to_stale", "spec 3, status, stale_to_offline", "spec 2, device, status")
	f.exec(t, `UPDATE device_state SET last_seen_at = $1`, start)
	for _, want := range []struct {
		after  time.Duration
		status roomsensor.Status
	}{{0, roomsensor.Online}, {time.Hour, roomsensor.Stale}, {23 * time.Hour, roomsensor.Stale}, {time.Microsecond, roomsensor.Offline}} {
		f.clock.advance(want.after)
		for _, body := range f.deviceBodies(t) {
			require.Contains(t, body, `"status":"`+string(want.status)+`"`)
		}
	}
}

// The metadata belong to the client, who filters by them. Values are compared exactly (decision 18).
func TestMetadataFilter(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 17 j", "decision 18 a", "decision 18 b", "spec 2, device, metadata, client_owned",
		"spec 4, devices, metadata, match", "spec 4, devices, metadata, all")
	f := setup(t)
	for tags, queries := range map[string]struct{ found, not []string }{
		`{"floor":"1"}`: {
			[]string{"metadata.floor=1", "metadata%2Efloor=1", "%6Detadata.floor=%31", "metadata.floor=1&limit=5"},
			[]string{
				"metadata.floor=", "metadata.floor=01", "metadata.floor=1+", "metadata.floor=%25", "metadata.Floor=1", "metadata.flo=1",
				"metadata.floor.=1", "metadata.floor%00=1", "metadata.floor=1%00", "metadata.floor=%221%22",
			},
		},
		`{"a.b":"x","a":"y"}`: {
			[]string{"metadata.a.b=x", "metadata.a=y", "metadata.a%2Eb=x&metadata.a=y"},
			[]string{"metadata.b=x", "metadata.a=x", "metadata.a.b=y", "metadata.a.b=x&metadata.a=x"},
		},
		`{"metadata.x":"1"}`: {[]string{"metadata.metadata.x=1"}, []string{"metadata.x=1", "metadata.metadata.metadata.x=1"}},
		`{".":"dot","..":"dots","-":"dash"}`: {
			[]string{"metadata..=dot", "metadata...=dots", "metadata.-=dash", "metadata..=dot&metadata...=dots"}, []string{"metadata...=dot"},
		},
		`{"v":"a=b&c;d+e f%g\"\\"}`: {
			[]string{"metadata.v=a%3Db%26c%3Bd%2Be+f%25g%22%5C", "metadata.v=a=b%26c%3Bd%2Be%20f%25g%22%5C"},
			[]string{"metadata.v=a", "metadata.v=a%3Db%26c%3Bd+e+f%25g%22%5C"},
		},
		`{"` + strings.Repeat("k", 64) + `":"` + strings.Repeat("ü", 500) + `"}`: {
			[]string{"metadata." + strings.Repeat("k", 64) + "=" + strings.Repeat("%C3%BC", 500)},
			[]string{
				"metadata." + strings.Repeat("k", 65) + "=" + strings.Repeat("%C3%BC", 500),
				"metadata." + strings.Repeat("k", 64) + "=" + strings.Repeat("%C3%BC", 499),
			},
		},
		`{"e":""}`: {[]string{"metadata.e=", "metadata.e"}, []string{"metadata.e=+", "metadata.f="}},
	} {
		f.patch(t, `{"metadata":null}`)
		require.Contains(t, string(f.patch(t, `{"metadata":`+tags+`}`).requireOK(t).body), `"metadata":{"`)
		for _, path := range []string{"/devices", "/devices/current"} {
			for _, query := range queries.found {
				require.Len(t, f.items(t, path+"?"+query), 1, "%s %s", tags, query)
			}
			for _, query := range queries.not {
				require.Empty(t, f.items(t, path+"?"+query), "%s %s", tags, query)
			}
		}
	}
	conformance.Covers(t, "decision 18 c")
	for _, path := range []string{"/devices", "/devices/current"} {
		for _, query := range []string{
			"metadata.=x", "metadata.", "metadata%2E=x", "limit=1&metadata.=x", "metadata.=x&metadata.a=b",
			"cursor=x&metadata.=",
		} {
			f.get(t, path+"?"+query).requireInvalid(t, "metadata.")
		}
	}
	f.patch(t, `{"metadata":null}`).requireOK(t)
	for i, tags := range []string{`{"floor":"1","wing":"a"}`, `{"floor":"1","wing":"b"}`, `{"floor":"2"}`} {
		id := testID(0xde, 10+i)
		f.addDevice(t, teamID, id, fmt.Sprintf("dev:%d", 10+i))
		f.exec(t, `UPDATE devices SET metadata = $2 WHERE id = $1`, id, tags)
	}
	for query, want := range map[string]int{
		"metadata.floor=1": 2, "metadata.floor=1&metadata.wing=b": 1,
		"metadata.floor=2&metadata.wing=b": 0,
	} {
		require.Len(t, f.items(t, "/devices?"+query), want, query)
		require.Len(t, f.items(t, "/devices/current?"+query), want, query)
	}
}

// TestRetiredDevice checks that a retired device is in no list, and that its id still answers.
func TestRetiredDevice(t *testing.T) {
	t.Parallel()
	f := setup(t)
	other := testID(0xde, 2)
	f.addDevice(t, teamID, other, "dev:2")
	f.storeReading(t, deviceID, start.Add(-time.Hour), 700)
	lists := []string{"/devices", "/devices/current", "/coverage?from=2026-11-20T00:00:00Z&to=2026-11-20T10:00:00Z"}
	for _, list := range lists {
		require.Len(t, f.items(t, list), 2, list)
	}
	tag := f.get(t, "/devices/current").header.Get("ETag")
	_, err := f.store.RetireDevice(t.Context(), teamID, deviceID, start)
	require.NoError(t, err)

	conformance.Covers(t, "decision 14 d")
	for _, list := range lists {
		items := f.items(t, list)
		require.Len(t, items, 1, list)
		require.Equal(t, other.String(), items[0]["device_id"])
	}
	require.NotEqual(t, tag, f.get(t, "/devices/current").header.Get("ETag"))
	require.Equal(t, http.StatusOK, f.get(t, devicePath).status)
	window := "?from=2026-11-20T00:00:00Z&to=2026-11-20T10:00:00Z"
	require.Len(t, f.items(t, readingsPath+window), 1)
	require.Contains(t, string(f.get(t, "/readings.csv"+window).body), deviceID.String())
}
