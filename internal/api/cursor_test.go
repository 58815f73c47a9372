package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// firstCursor is the cursor that a first page gives.
func (f *fixture) firstCursor(t testing.TB, path string) string {
	t.Helper()
	page := decode[list[map[string]any]](t, f.get(t, path))
	require.NotNil(t, page.NextCursor, path)
	return url.QueryEscape(*page.NextCursor)
}

// Decisions 11 and 12.
func TestCursorMismatches(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, readings, rule 6", "spec 7, code cursor_invalid",
		"spec 7, code cursor_team_mismatch", "spec 7, code cursor_device_mismatch", "spec 8, paging, key",
		"spec 8, paging, device", "spec 8, paging, opaque", "spec 8, paging, saved")
	conformance.Covers(t, "decision 11.3", "decision 11.5")
	f := setup(t)
	other := number(0xde, 2)
	f.addDevice(t, teamID, other, "dev:2")
	f.addReadings(t, deviceID, start.Add(-10*time.Hour), 5)
	cursor := f.firstCursor(t, readingsPath+"?limit=1")
	devices := f.firstCursor(t, "/devices?limit=1")
	current := f.firstCursor(t, "/devices/current?limit=1")
	bent := []byte(cursor)
	bent[len(bent)/2] ^= 1
	for name, tc := range map[string]struct {
		path string
		key  string
		code roomsensor.Code
	}{
		"right":                   {readingsPath + "?cursor=" + cursor, f.key, ""},
		"tampered":                {readingsPath + "?cursor=" + string(bent), f.key, roomsensor.CodeCursorInvalid},
		"cut":                     {readingsPath + "?cursor=" + cursor[:20], f.key, roomsensor.CodeCursorInvalid},
		"of another list":         {readingsPath + "?cursor=" + devices, f.key, roomsensor.CodeCursorInvalid},
		"of a list beside it":     {"/devices?cursor=" + current, f.key, roomsensor.CodeCursorInvalid},
		"of that list, other key": {"/devices?cursor=" + current, f.readKey, roomsensor.CodeCursorInvalid},
		"other key":               {readingsPath + "?cursor=" + cursor, f.readKey, roomsensor.CodeCursorTeamMismatch},
		"other key and device":    {"/devices/" + other.String() + "/readings?cursor=" + cursor, f.readKey, roomsensor.CodeCursorTeamMismatch},
		"other device":            {"/devices/" + other.String() + "/readings?cursor=" + cursor, f.key, roomsensor.CodeCursorDeviceMismatch},
		"a device that is none":   {"/devices/" + number(9, 9).String() + "/readings?cursor=" + cursor, f.key, roomsensor.CodeCursorDeviceMismatch},
		"mismatch before differs": {"/devices/" + other.String() + "/readings?last=2h&cursor=" + cursor, f.key, roomsensor.CodeCursorDeviceMismatch},
	} {
		got := f.get(t, tc.path, withKey(tc.key))
		if tc.code == "" {
			require.Equal(t, http.StatusOK, got.status, name)
			continue
		}
		got.requireError(t, tc.code, "cursor")
	}
	replica := f.serve(t, backend{f.store}, nil)
	path := "/v1" + readingsPath + "?cursor=" + cursor
	require.Equal(t, http.StatusOK, replica.do(t, http.MethodGet, path, "", withKey(f.key)).status, "any replica goes on")

	f.clock.advance(24 * time.Hour)
	require.Equal(t, http.StatusOK, f.get(t, readingsPath+"?cursor="+cursor).status)
	f.clock.advance(time.Microsecond)
	f.get(t, readingsPath+"?cursor="+cursor).requireError(t, roomsensor.CodeCursorInvalid, "cursor")
	f.get(t, readingsPath+"?cursor="+cursor, withKey(f.readKey)).requireError(t, roomsensor.CodeCursorInvalid, "cursor")
}

// Decision 12: a parameter beside a cursor may be left out, and must mean what
// it meant on the first page.
func TestParametersBesideACursor(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 12.1", "decision 12.2", "decision 12.7", "decision 12.8", "decision 12.9", "decision 12.10")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-10*time.Hour), 60)
	block, nobody := number(0xa5, 1).String(), number(0xa5, 2).String()
	f.addAssignment(t, deviceID, number(0xa5, 1), start.Add(-9*time.Hour), nil)
	from, to := roomsensor.FormatTime(start.Add(-8*time.Hour)), roomsensor.FormatTime(start)
	sameFrom := start.Add(-8*time.Hour).Format("2006-01-02T15:04:05") + ".000000000Z"
	for _, tc := range []struct {
		first, second string
		differs       string // empty: it does not
	}{
		{"", "", ""},
		{"", "last=24h", ""},
		{"", "last=1d", ""},
		{"", "last=1440m", ""},
		{"", "last=23h", "last"},
		{"", "from=" + from, "from"},
		{"", "to=" + to, "to"},
		{"", "last=24h&from=x&to=y", ""},
		{"", "last=1h&from=x", "last"},
		{"", "assignment_id=" + block, "assignment_id"},
		{"", "assignment_id=" + block + "&last=1h", "assignment_id"},
		{"", "last=1h&assignment_id=" + block, "last"},
		{"last=24h", "last=24h", ""},
		{"last=24h&from=x", "last=24h&from=y", ""},
		{"last=24h", "from=" + from, "from"},
		{"from=" + from, "from=" + from, ""},
		{"from=" + from, "from=" + sameFrom, ""},
		{"from=" + from, "from=" + to, "from"},
		{"from=" + from, "to=" + to, "to"},
		{"from=" + from, "last=24h", "last"},
		{"from=" + from, "last=24h&from=" + from, "last"},
		{"from=" + from + "&to=" + to, "to=" + to, ""},
		{"from=" + from + "&to=" + to, "to=" + to + "&from=" + from, ""},
		{"from=" + from + "&to=" + to, "from=" + to, "from"},
		{"from=" + from + "&to=" + to, "from=" + to + "&to=" + from, "from"},
		{"assignment_id=" + block, "assignment_id=" + block, ""},
		{"assignment_id=" + block, "assignment_id=" + "A5" + block[2:], ""},
		{"assignment_id=" + block, "assignment_id=" + nobody, "assignment_id"},
		{"assignment_id=" + block, "last=24h", "last"},
		{"assignment_id=" + block + "&last=24h", "last=1d", ""},
	} {
		t.Run(tc.first+" then "+tc.second, func(t *testing.T) {
			t.Parallel()
			cursor := f.firstCursor(t, readingsPath+"?limit=5&"+tc.first)
			got := f.get(t, readingsPath+"?cursor="+cursor+"&"+tc.second)
			if tc.differs != "" {
				got.requireError(t, roomsensor.CodeValidationFailed, tc.differs)
				return
			}
			require.Len(t, decode[list[reading]](t, got).Data, 5, "limit is as on the page before")
			got = f.get(t, readingsPath+"?limit=7&cursor="+cursor+"&"+tc.second)
			require.Len(t, decode[list[reading]](t, got).Data, 7)
		})
	}
}

func TestFiltersBesideACursor(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 12.1", "decision 12.7", "decision 12.8", "decision 12.9")
	f := setup(t)
	for i := range 6 {
		id := number(0xde, 10+i)
		f.addDevice(t, teamID, id, fmt.Sprintf("dev:%d", 10+i))
		f.exec(t, `UPDATE devices SET metadata = '{"floor":"1","wing":"a"}' WHERE id = $1`, id)
	}
	for _, path := range []string{"/devices", "/devices/current"} {
		cursor := f.firstCursor(t, path+"?metadata.floor=1&metadata.wing=a&limit=2")
		for query, differs := range map[string]string{
			"":                                    "",
			"&metadata.floor=1":                   "",
			"&metadata.wing=a&metadata.floor=1":   "",
			"&metadata.floor=2":                   "metadata.floor",
			"&metadata.wing=A":                    "metadata.wing",
			"&metadata.room=1":                    "metadata.room",
			"&metadata.floor=":                    "metadata.floor",
			"&metadata.floor=2&metadata.wing=b":   "metadata.floor",
			"&metadata.wing=b&metadata.floor=2":   "metadata.wing",
			"&metadata.wing=a&metadata.floor%20=": "metadata.floor ",
		} {
			got := f.get(t, path+"?cursor="+cursor+query)
			if differs != "" {
				got.requireError(t, roomsensor.CodeValidationFailed, differs)
				continue
			}
			require.Len(t, decode[list[map[string]any]](t, got).Data, 2, "the filters of the first page hold")
		}
	}
}

// Decisions 11 and 13: the window of a walk does not slide, and rows that
// arrive during it neither repeat nor push out those that were there.
func TestWalkWhileRowsArrive(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 11.4", "decision 13")
	f := setup(t)
	const buckets = 288
	order := rand.New(rand.NewPCG(1, 2)).Perm(buckets) // A seed of its own keeps it the same.
	at := func(i int) time.Time { return start.Add(-24 * time.Hour).Add(time.Duration(i) * 5 * time.Minute) }
	there := order[:buckets/2]
	for _, i := range there {
		f.addReading(t, deviceID, at(i), float32(i))
	}
	seen := map[int]int{}
	query := "last=24h&limit=10"
	for arriving := order[buckets/2:]; ; {
		page := decode[list[reading]](t, f.get(t, readingsPath+"?"+query))
		for _, n := range co2s(page) {
			seen[n]++
		}
		if page.NextCursor == nil {
			break
		}
		query = "cursor=" + url.QueryEscape(*page.NextCursor)
		f.clock.advance(7 * time.Minute)
		for _, i := range arriving[:min(10, len(arriving))] {
			f.addReading(t, deviceID, at(i), float32(i))
		}
		f.addReading(t, deviceID, f.clock.now().Truncate(5*time.Minute), 1000)
		arriving = arriving[min(10, len(arriving)):]
	}
	require.NotContains(t, seen, 1000, "the window ends where it ended on the first page")
	for _, i := range there {
		require.Equal(t, 1, seen[i])
	}
	for i, times := range seen {
		require.Equal(t, 1, times, "bucket %d", i)
	}
}

// Tenants: what is of another team answers as what never was.
func TestForeignIDs(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, GET /devices/{device_id}, 404", "spec 4, readings, rule 4",
		"spec 7, code device_not_found", "spec 7, code assignment_not_found", "spec 7, status 404")
	f := setup(t)
	team, device, block := number(0x7e, 2), number(0xde, 2), number(0xa5, 2)
	f.addTeam(t, team)
	f.addDevice(t, team, device, "dev:2")
	f.addReadings(t, device, start.Add(-time.Hour), 3)
	f.addAssignment(t, device, block, start.Add(-time.Hour), nil)
	own := f.addKey(t, roomsensor.Key{TeamID: team, Scope: roomsensor.ScopeReadWrite})
	require.Contains(t, string(f.get(t, "/devices/"+device.String()+"/readings", withKey(own)).body), "co2_ppm")
	ask := func(method, path string, id uuid.UUID) response {
		return f.do(t, method, fmt.Sprintf(path, id), `{"display_name":"x"}`, header("Content-Type", "application/json"))
	}
	for _, tc := range []struct {
		method, path    string
		foreign, absent uuid.UUID
		code            roomsensor.Code
		param           string
	}{
		{"GET", "/devices/%s", device, number(9, 1), roomsensor.CodeDeviceNotFound, "device_id"},
		{"PATCH", "/devices/%s", device, number(9, 1), roomsensor.CodeDeviceNotFound, "device_id"},
		{"GET", "/devices/%s/readings", device, number(9, 1), roomsensor.CodeDeviceNotFound, "device_id"},
		{"GET", "/devices/%s/assignments", device, number(9, 1), roomsensor.CodeDeviceNotFound, "device_id"},
		{"GET", "/readings.csv?devices=%s", device, number(9, 1), roomsensor.CodeDeviceNotFound, "devices"},
		{"GET", "/readings.csv?assignment_id=%s", block, number(9, 1), roomsensor.CodeAssignmentNotFound, "assignment_id"},
		{"GET", readingsPath + "?assignment_id=%s", block, number(9, 1), roomsensor.CodeAssignmentNotFound, "assignment_id"},
	} {
		foreign, absent := ask(tc.method, tc.path, tc.foreign), ask(tc.method, tc.path, tc.absent)
		foreign.requireError(t, tc.code, tc.param)
		require.Equal(t, http.StatusNotFound, foreign.status, tc.path)
		require.Equal(t, fleeting.ReplaceAllString(string(absent.body), ""), fleeting.ReplaceAllString(string(foreign.body), ""))
	}
	for _, path := range []string{"/devices", "/devices/current", "/readings.csv"} {
		require.NotContains(t, string(f.get(t, path).body), device.String())
	}
}
