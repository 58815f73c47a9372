package api_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// everyGet are the endpoints that read, on a window that has all readings.
func everyGet() []string {
	device := "/devices/" + deviceID.String()
	return []string{
		"/team", "/devices", "/devices/current", device, device + "/assignments", device + "/readings?last=90d",
		"/readings.csv?last=90d", "/readings.csv?last=90d&shape=wide",
	}
}

// eachMember visits the members of all objects in a body.
func eachMember(value any, visit func(name string, value any)) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			visit(name, member)
			eachMember(member, visit)
		}
	case []any:
		for _, element := range value {
			eachMember(element, visit)
		}
	}
}

func (r response) records(t *testing.T) [][]string {
	t.Helper()
	require.Equal(t, http.StatusOK, r.status, string(r.body))
	records, err := csv.NewReader(bytes.NewReader(r.body)).ReadAll()
	require.NoError(t, err)
	return records
}

func TestTimesAreUTC(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 1, convention 1, returned")
	f := setup(t)
	f.fill(t)
	f.addReading(t, deviceID, start.Add(-time.Hour), 1)
	utc := regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z$`)
	seen := map[string]bool{}
	for _, path := range everyGet() {
		got := f.get(t, path)
		if strings.HasPrefix(path, "/readings.csv") {
			require.Regexp(t, utc, got.records(t)[1][0], path)
			continue
		}
		eachMember(decode[any](t, got), func(name string, value any) {
			if text, ok := value.(string); ok && (strings.HasSuffix(name, "_at") || name == "from") {
				require.Regexp(t, utc, text, "%s %s", path, name)
				seen[name] = true
			}
		})
	}
	require.Equal(t, map[string]bool{
		"last_seen_at": true, "started_at": true, "ended_at": true, "bucket_at": true, "ingested_at": true, "from": true,
	}, seen)
}

func TestEachMetricIsNullableOnItsOwn(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 1, convention 2")
	f := setup(t)
	for i, missing := range roomsensor.Metrics {
		f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
			VALUES ($1, $2, 0, 0, 0, 0, 0)`, deviceID, start.Add(-time.Duration(i+1)*time.Hour))
		f.exec(t, `UPDATE readings SET `+missing.String()+` = NULL WHERE bucket_at = $1`, start.Add(-time.Duration(i+1)*time.Hour))
	}
	page := decode[list[map[string]any]](t, f.get(t, readingsPath))
	long := f.get(t, "/readings.csv").records(t)
	wide := f.get(t, "/readings.csv?shape=wide").records(t)
	n := len(roomsensor.Metrics)
	for i, missing := range roomsensor.Metrics {
		for j, m := range roomsensor.Metrics {
			value, there := page.Data[i][m.String()]
			require.True(t, there, "%s is there in any case", m)
			cells := []string{long[n-i][3+j], wide[n-i][1+j]}
			if m == missing {
				require.Nil(t, value, m)
				require.Equal(t, []string{"", ""}, cells)
			} else {
				require.InDelta(t, 0, value, 0, "%s is zero, not missing", m)
				require.Equal(t, []string{"0", "0"}, cells)
			}
		}
	}
}

func TestHardwareIDIsNoID(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 1, convention 4", "spec 2, device, hardware_id, no id")
	f := setup(t)
	require.Equal(t, "dev:1", decode[map[string]any](t, f.get(t, "/devices/"+deviceID.String()))["hardware_id"])
	for path, param := range map[string]string{
		"/devices/dev:1": "device_id", "/devices/dev:1/readings": "device_id", "/devices/dev:1/assignments": "device_id",
		"/readings.csv?devices=dev:1":                             "devices",
		"/readings.csv?devices=" + deviceID.String() + ",dev:1":   "devices",
		"/devices?hardware_id=dev:1":                              "hardware_id",
		"/readings.csv?hardware_id=dev:1":                         "hardware_id",
		readingsPath + "?hardware_id=dev:1":                       "hardware_id",
		"/devices/current?device_id=" + deviceID.String():         "device_id",
		"/devices/" + deviceID.String() + "?hardware_id=dev%3A01": "hardware_id",
	} {
		f.get(t, path).requireError(t, roomsensor.CodeValidationFailed, param)
	}
	f.do(t, http.MethodPatch, "/devices/dev:1", `{"display_name":"x"}`, header("Content-Type", "application/json")).
		requireError(t, roomsensor.CodeValidationFailed, "device_id")
	f.patch(t, `{"hardware_id":"dev:2"}`).requireError(t, roomsensor.CodeValidationFailed, "hardware_id")
}

func TestBodiesAreJSON(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 1, bodies")
	f := setup(t)
	f.fill(t)
	f.addReading(t, deviceID, start.Add(-time.Hour), 1)
	answers := []response{f.patch(t, `{"metadata":{}}`), f.get(t, "/nothing"), f.get(t, "/readings.csv?shape=tall")}
	for _, path := range everyGet() {
		got := f.get(t, path)
		if strings.HasPrefix(path, "/readings.csv") {
			require.Equal(t, "text/csv; charset=utf-8", got.header.Get("Content-Type"))
			require.Len(t, got.records(t), 2)
			continue
		}
		answers = append(answers, got)
	}
	for _, got := range answers {
		require.Equal(t, "application/json; charset=utf-8", got.header.Get("Content-Type"))
		require.True(t, json.Valid(got.body), string(got.body))
	}
}

// belongings is what a team has.
type belongings struct {
	key    string
	device uuid.UUID
}

func TestTeamIsThatOfTheKey(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 1, one team", "spec 1, team of the key", "spec 5, rule 2")
	f := setup(t)
	other := belongings{device: number(0xde, 2)}
	f.addTeam(t, number(0x7e, 2))
	f.addDevice(t, number(0x7e, 2), other.device, "dev:2")
	other.key = f.addKey(t, roomsensor.Key{TeamID: number(0x7e, 2), Scope: roomsensor.ScopeRead})
	own := belongings{f.key, deviceID}
	for _, device := range []uuid.UUID{own.device, other.device} {
		f.addReading(t, device, start.Add(-time.Hour), 1)
	}
	for _, path := range []string{"/devices", "/devices/current", "/readings.csv"} {
		for _, pair := range [][2]belongings{{own, other}, {other, own}} {
			body := string(f.get(t, path, withKey(pair[0].key)).body)
			require.Contains(t, body, pair[0].device.String(), path)
			require.NotContains(t, body, pair[1].device.String(), path)
		}
	}
	require.NotEqual(t, string(f.get(t, "/team").body), string(f.get(t, "/team", withKey(other.key)).body))
	for _, path := range everyGet() {
		path, _, _ = strings.Cut(path, "?")
		f.get(t, path+"?team_id="+teamID.String()).requireError(t, roomsensor.CodeValidationFailed, "team_id")
	}
	f.patch(t, `{"team_id":"`+teamID.String()+`"}`).requireError(t, roomsensor.CodeValidationFailed, "team_id")
}

func TestOnlyPatchChangesAnything(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 1, read-mostly", "spec 1, assignments are made elsewhere", "spec 3, assignment, transitions")
	f := setup(t)
	f.fill(t)
	f.addReading(t, deviceID, start.Add(-time.Hour), 1)
	before := f.everything(t)
	assignments := "/devices/" + deviceID.String() + "/assignments"
	for _, path := range append(everyGet(), assignments, assignments+"/"+number(0xa5, 2).String(), "/assignments", "/devices/"+deviceID.String()) {
		path, _, _ = strings.Cut(path, "?")
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"} {
			got := f.do(t, method, path, `{"assignment":{"ended_at":"2026-11-20T10:00:00Z"}}`, header("Content-Type", "application/json"))
			if method == "PATCH" && path == "/devices/"+deviceID.String() {
				got.requireError(t, roomsensor.CodeNotImplemented, "assignment")
			} else if method != "GET" && method != "HEAD" {
				require.Contains(t, []int{http.StatusNotFound, http.StatusMethodNotAllowed}, got.status, "%s %s", method, path)
			}
		}
	}
	require.Equal(t, before, f.everything(t))
	require.Equal(t, http.StatusOK, f.patch(t, `{"display_name":"New","metadata":{"a":"1"}}`).status)
	require.NotEqual(t, before, f.everything(t))
}

// everything is what the tables hold that a client can see.
func (f *fixture) everything(t *testing.T) (text string) {
	t.Helper()
	require.NoError(t, f.sql.QueryRow(t.Context(), `SELECT concat(
		(SELECT string_agg(t::text, E'\n' ORDER BY t::text) FROM teams t),
		(SELECT string_agg(d::text, E'\n' ORDER BY d::text) FROM devices d),
		(SELECT string_agg(a::text, E'\n' ORDER BY a::text) FROM assignments a),
		(SELECT string_agg(r::text, E'\n' ORDER BY r::text) FROM readings r))`).Scan(&text))
	return text
}
