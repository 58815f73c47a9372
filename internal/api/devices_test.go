package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

type device struct {
	DeviceID   string            `json:"device_id"`
	Status     string            `json:"status"`
	LastSeenAt *string           `json:"last_seen_at"`
	Metadata   map[string]string `json:"metadata"`
}

// fill gives the fixture's device a value in every field, and adds one that
// has as few as can be.
func (f *fixture) fill(t *testing.T) {
	t.Helper()
	f.exec(t, `UPDATE devices SET display_name = 'Gym <"A"> é', firmware_version = '2.4.1',
		metadata = '{"room":"12","floor":"1","a.b:c-d_e":""}', last_seen_at = '2026-11-20 09:59:59.25Z',
		rssi_dbm = -87, signal_bars = 0 WHERE id = $1`, deviceID)
	end := start.Add(-2 * time.Hour)
	f.addAssignment(t, deviceID, number(0xa5, 1), start.Add(-3*time.Hour), &end)
	f.addAssignment(t, deviceID, number(0xa5, 2), start.Add(-time.Hour), nil)
	f.exec(t, `UPDATE assignments SET type = 'athlete', label = 'Ana', external_ref = 'crm-7', home_or_travel = 'home' WHERE id = $1`,
		number(0xa5, 2))
	f.addDevice(t, teamID, number(0xde, 2), "dev:2")
}

func TestDevicesGolden(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 9, rule 4, active_assignment", "spec 9, rule 4, history",
		"spec 4, assignments", "spec 4, assignments, items")
	f := setup(t)
	f.fill(t)
	requireGolden(t, "device.json.golden", f.get(t, "/devices/"+deviceID.String()).body)
	requireGolden(t, "devices.json.golden", f.get(t, "/devices").body)
	requireGolden(t, "assignments.json.golden", f.get(t, "/devices/"+deviceID.String()+"/assignments").body)
}

// Decision 16.
func TestStatus(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 3, status, online", "spec 3, status, stale", "spec 3, status, offline")
	f := setup(t)
	path := "/devices/" + deviceID.String()
	require.Equal(t, "offline", decode[device](t, f.get(t, path)).Status)
	for _, tc := range []struct {
		age  time.Duration
		want string
	}{
		{-time.Minute, "online"},
		{0, "online"},
		{time.Hour - time.Microsecond, "online"},
		{time.Hour, "stale"},
		{24 * time.Hour, "stale"},
		{24*time.Hour + time.Microsecond, "offline"},
	} {
		f.exec(t, `UPDATE devices SET last_seen_at = $2 WHERE id = $1`, deviceID, start.Add(-tc.age))
		require.Equal(t, tc.want, decode[device](t, f.get(t, path)).Status, tc.age)
	}
}

// Spec 4, GET /devices; decision 18.
func TestMetadataFilters(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 18.1", "decision 18.2")
	conformance.Covers(t, "spec 4, GET /devices, metadata", "spec 4, GET /devices, metadata, all")
	f := setup(t)
	for i, tags := range []string{
		`{"floor":"1","wing":"a"}`, `{"floor":"1","wing":"b"}`, `{"floor":"2"}`, `{"metadata.x":"y"}`, `{"floor":""}`, `{"e":"ü=&;"}`,
	} {
		id := number(0xde, 10+i)
		f.addDevice(t, teamID, id, fmt.Sprintf("dev:%d", 10+i))
		f.exec(t, `UPDATE devices SET metadata = $2 WHERE id = $1`, id, tags)
	}
	for query, want := range map[string][]int{
		"metadata.floor=1":                 {10, 11},
		"metadata.floor=1&metadata.wing=b": {11},
		"metadata.floor=2&metadata.wing=b": {},
		"metadata.floor=01":                {},
		"metadata.floor=":                  {14},
		"metadata.floor":                   {14},
		"metadata.Floor=1":                 {},
		"metadata.metadata.x=y":            {13},
		"metadata.%65=%C3%BC%3D%26%3B":     {15},
		"metadata.floor=1%00":              {},
	} {
		for _, path := range []string{"/devices", "/devices/current"} {
			page := decode[list[device]](t, f.get(t, path+"?"+query))
			ids := []string{}
			for _, d := range page.Data {
				ids = append(ids, d.DeviceID)
			}
			expected := []string{}
			for _, n := range want {
				expected = append(expected, number(0xde, n).String())
			}
			require.Equal(t, expected, ids, "%s?%s", path, query)
		}
	}
}

// Decision 10.
func TestPagesOfDevices(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, GET /devices", "spec 4, GET /devices, cursor", "spec 4, GET /devices, response",
		"spec 4, GET /devices, page", "spec 8, page size")
	f := setup(t)
	f.exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(2, 2005) i`, teamID)
	for _, path := range []string{"/devices", "/devices/current"} {
		last, total := "", 0
		for i, page := range f.walk(t, path, "") {
			require.LessOrEqual(t, len(page.Data), 1000, "page %d", i)
			total += len(page.Data)
		}
		require.Equal(t, 2005, total)
		first := decode[list[device]](t, f.get(t, path+"?limit=500"))
		require.Len(t, first.Data, 500)
		for _, d := range first.Data {
			require.Less(t, last, d.DeviceID, "ascending")
			last = d.DeviceID
		}
		next := decode[list[device]](t, f.get(t, path+"?cursor="+*first.NextCursor))
		require.Less(t, last, next.Data[0].DeviceID)
		require.Len(t, next.Data, 500)
	}
}

func TestPagesOfAssignments(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, assignments")
	f := setup(t)
	path := "/devices/" + deviceID.String() + "/assignments"
	requireGolden(t, "empty.json.golden", f.get(t, path).body)
	for i := range 7 {
		end := start.Add(time.Duration(i-9) * time.Hour)
		f.addAssignment(t, deviceID, number(0xa5, i), end.Add(-time.Hour), &end)
	}
	type assignment struct {
		ID string `json:"assignment_id"`
	}
	var got []string
	query := "?limit=3"
	for query != "" {
		page := decode[list[assignment]](t, f.get(t, path+query))
		for _, a := range page.Data {
			got = append(got, a.ID)
		}
		query = ""
		if page.NextCursor != nil {
			query = "?cursor=" + *page.NextCursor
		}
	}
	require.Len(t, got, 7)
	for i, id := range got {
		require.Equal(t, number(0xa5, 6-i).String(), id, "newest first")
	}
	f.get(t, "/devices/"+number(9, 9).String()+"/assignments").requireError(t, roomsensor.CodeDeviceNotFound, "device_id")
}

// Decision 17.
func TestCurrentGolden(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 17.1", "decision 17.2", "decision 17.4", "decision 17.6")
	conformance.Covers(t, "spec 4, GET /devices/current")
	f := setup(t)
	f.fill(t)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, ingested_at) VALUES
		($1, '2026-11-20 09:55Z', 600, 21.4, '2026-11-20 09:56Z'),
		($1, '2026-11-20 09:50Z', 601, NULL, '2026-11-20 09:57Z'),
		($1, '2026-11-19 11:00Z', 602, -0.2, '2026-11-20 09:58Z'),
		($1, '2026-11-19 10:55Z', 9999, 90, '2026-11-20 09:59Z')`, deviceID)
	got := f.get(t, "/devices/current")
	requireGolden(t, "current.json.golden", got.body)
	require.NotContains(t, string(got.body), "firmware_version")
	f.addReading(t, deviceID, start.Add(-5*24*time.Hour), 7)
	require.Equal(t, string(got.body), string(f.get(t, "/devices/current").body), "latest is by bucket, not by arrival")
}

// Decision 42.
func TestConditionalRequests(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 42.2", "decision 42.3")
	f := setup(t)
	paths := []string{"/team", "/devices", "/devices/current", "/devices/" + deviceID.String(), readingsPath}
	for _, path := range paths {
		first := f.get(t, path)
		tag := first.header.Get("ETag")
		require.Regexp(t, `^W/"[a-z0-9]{1,13}"$`, tag)
		require.Equal(t, tag, f.get(t, path, header("Accept-Encoding", "gzip")).header.Get("ETag"), "of the body before compression")
		for value, status := range map[string]int{
			tag: 304, "*": 304, strings.TrimPrefix(tag, "W/"): 304, `"x", ` + tag + `, "y"`: 304,
			`"x"`: 200, "": 200, "x": 200, tag[:len(tag)-2] + `"`: 200,
		} {
			got := f.get(t, path, header("If-None-Match", value))
			require.Equal(t, status, got.status, "%s %s", path, value)
			require.Equal(t, tag, got.header.Get("ETag"))
			require.Equal(t, "600", got.header.Get("RateLimit-Limit"))
			if status == http.StatusNotModified {
				require.Empty(t, got.body)
				require.Empty(t, got.header.Get("Content-Type"))
			}
		}
	}
	tag := f.get(t, paths[3]).header.Get("ETag")
	f.nameDevice(t, deviceID, "Other")
	require.Equal(t, http.StatusOK, f.get(t, paths[3], header("If-None-Match", tag)).status)
	require.Equal(t, http.StatusOK, f.patch(t, `{"metadata":{}}`, header("If-None-Match", "*")).status, "of GET alone")
}
