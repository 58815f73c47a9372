package api_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/cursor"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
	"roomsensor/test/openapitest"
)

func TestGetTeam(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, team, response", "spec 2, team, id", "spec 2, team, name", "spec 2, api_key, key_id",
		"spec 2, api_key, scopes", "spec 5, rule 3, one_scope")
	f := setup(t)
	for key, scope := range map[string]string{f.key: "read_write", f.readKey: "read"} {
		got := f.get(t, "/team", withKey(key))
		require.JSONEq(t, `{"team":{"id":"`+teamID.String()+`","name":"Team <&>"},"api_key":{"key_id":"`+keyID(key)+`","scopes":["`+scope+`"]}}`,
			string(got.body))
		require.Contains(t, string(got.body), "Team <&>", "not escaped for HTML")
	}
}

// probes lists, for every operation, requests with ids that may be another team's or nobody's: {team}, {device},
// {hardware}, {assignment}, {tag}, a {cursor} of the same list and {used}, an Idempotency-Key. {own} and
// {ownAssignment} belong to the team that sends the request.
var probes = map[string][]string{
	"GET /team":    {"/team?team={team}", "/team?device={device}"},
	"GET /devices": {"/devices?cursor={cursor}", "/devices?metadata.site={tag}", "/devices?metadata.{tag}=x", "/devices?team={team}"},
	"GET /devices/current": {
		"/devices/current?cursor={cursor}", "/devices/current?metadata.site={tag}", "/devices/current?device_id={device}",
	},
	"GET /devices/{device_id}": {"/devices/{device}", "/devices/{hardware}", "/devices/{assignment}", "/devices/{device}?team={team}"},
	"GET /devices/{device_id}/assignments": {
		"/devices/{device}/assignments", "/devices/{device}/assignments?limit=1", "/devices/{device}/assignments?cursor={cursor}",
		"/devices/{own}/assignments?cursor={cursor}", "/devices/{hardware}/assignments", "/devices/{assignment}/assignments",
	},
	"GET /devices/{device_id}/readings": {
		"/devices/{device}/readings", "/devices/{device}/readings?assignment_id={assignment}", "/devices/{device}/readings?last=91d",
		"/devices/{device}/readings?assignment_id={ownAssignment}", "/devices/{device}/readings?cursor={cursor}", "/devices/{hardware}/readings",
		"/devices/{own}/readings?assignment_id={assignment}", "/devices/{own}/readings?assignment_id={assignment}&last=1h",
		"/devices/{own}/readings?assignment_id={device}", "/devices/{own}/readings?assignment_id={hardware}",
		"/devices/{own}/readings?cursor={cursor}", "/devices/{own}/readings?cursor={cursor}&assignment_id={assignment}",
	},
	"GET /devices/{device_id}/gaps": {
		"/devices/{device}/gaps", "/devices/{device}/gaps?assignment_id={assignment}", "/devices/{device}/gaps?min=x",
		"/devices/{device}/gaps?assignment_id={ownAssignment}", "/devices/{device}/gaps?cursor={cursor}", "/devices/{hardware}/gaps",
		"/devices/{own}/gaps?assignment_id={assignment}", "/devices/{own}/gaps?assignment_id={assignment}&last=1h",
		"/devices/{own}/gaps?cursor={cursor}", "/devices/{own}/gaps?cursor={cursor}&assignment_id={assignment}",
	},
	"GET /assignments": {
		"/assignments", "/assignments?cursor={cursor}", "/assignments?metadata.site={tag}", "/assignments?metadata.{tag}=x",
		"/assignments?last=1h&external_ref={tag}", "/assignments?last=1h&label={tag}", "/assignments?assignment_id={assignment}",
		"/assignments?device_id={device}",
	},
	"GET /nights": {
		"/nights", "/nights?cursor={cursor}", "/nights?metadata.site={tag}", "/nights?metadata.{tag}=x",
		"/nights?external_ref={tag}", "/nights?assignment_id={assignment}", "/nights?device_id={device}",
	},
	"GET /nights.csv": {
		"/nights.csv", "/nights.csv?metadata.site={tag}", "/nights.csv?metadata.{tag}=x", "/nights.csv?external_ref={tag}",
		"/nights.csv?assignment_id={assignment}", "/nights.csv?cursor={cursor}",
	},
	"GET /coverage": {
		"/coverage?cursor={cursor}", "/coverage?external_ref={tag}", "/coverage?metadata.site={tag}", "/coverage?metadata.{tag}=x", "/coverage?device_id={device}",
	},
	"GET /metrics": {
		"/metrics?metadata.site={tag}", "/metrics?metadata.{tag}=x", "/metrics?labels={tag}", "/metrics?device_id={device}",
	},
	"GET /readings/changes": {
		"/readings/changes?devices={device}", "/readings/changes?devices={own},{device}", "/readings/changes?devices={hardware}",
		"/readings/changes?cursor={cursor}", "/readings/changes?cursor={cursor}&devices={device}", "/readings/changes?metadata.site={tag}&devices={device}",
		"/readings/changes?device_id={device}", "/readings/changes?external_ref={tag}&devices={device}",
	},
	"GET /devices/{device_id}/aggregates": {
		"/devices/{device}/aggregates?interval=1h", "/devices/{device}/aggregates", "/devices/{hardware}/aggregates?interval=1d",
		"/devices/{device}/aggregates?interval=1d&assignment_id={assignment}", "/devices/{device}/aggregates?cursor={cursor}",
		"/devices/{device}/aggregates?interval=1h&assignment_id={ownAssignment}", "/devices/{own}/aggregates?cursor={cursor}",
		"/devices/{own}/aggregates?interval=1h&assignment_id={assignment}", "/devices/{own}/aggregates?interval=1h&assignment_id={device}",
		"/devices/{own}/aggregates?interval=1d&assignment_id={assignment}&last=1h",
	},
	"GET /aggregates.csv": {
		"/aggregates.csv?interval=1h&devices={device}", "/aggregates.csv?interval=1h&devices={own},{device}&fill=true",
		"/aggregates.csv?interval=1h&assignment_id={assignment}", "/aggregates.csv?interval=1d&assignment_id={assignment}&devices={own}",
		"/aggregates.csv?interval=1h&metadata.site={tag}", "/aggregates.csv?interval=1h&metadata.site={tag}&fill=true",
		"/aggregates.csv?interval=1h&devices={own},{hardware}", "/aggregates.csv?interval=1h&cursor={cursor}", "/aggregates.csv?interval=1h&external_ref={tag}",
	},
	"GET /readings.csv": {
		"/readings.csv?devices={device}", "/readings.csv?devices={own},{device}", "/readings.csv?devices={device},{own}",
		"/readings.csv?devices={device}&shape=wide", "/readings.csv?devices={own},{hardware}", "/readings.csv?devices={assignment}",
		"/readings.csv?assignment_id={assignment}", "/readings.csv?assignment_id={assignment}&shape=wide&last=1h",
		"/readings.csv?assignment_id={assignment}&devices={own}", "/readings.csv?assignment_id={assignment}&devices={device}",
		"/readings.csv?assignment_id={ownAssignment}&devices={device}", "/readings.csv?assignment_id={hardware}", "/readings.csv?cursor={cursor}",
		"/readings.csv?metadata.site={tag}", "/readings.csv?external_ref={tag}", "/readings.csv?metadata.{tag}=x&shape=wide&columns=id",
	},
	"GET /readings.parquet": {
		"/readings.parquet?devices={device}", "/readings.parquet?devices={own},{device}", "/readings.parquet?devices={hardware}",
		"/readings.parquet?assignment_id={assignment}", "/readings.parquet?assignment_id={ownAssignment}&devices={device}",
		"/readings.parquet?metadata.site={tag}", "/readings.parquet?external_ref={tag}", "/readings.parquet?metadata.{tag}=x", "/readings.parquet?cursor={cursor}",
	},
	"PATCH /devices/{device_id}": {
		"/devices/{device} {\"display_name\":\"x\"}", "/devices/{device} {\"metadata\":{\"one\":\"more\"}}",
		"/devices/{device} {\"assignment\":1}", "/devices/{device} {}", "/devices/{device} {\"display_name\":\"x\"} {used}",
		"/devices/{own} {\"display_name\":\"x\"} {used}", "/devices/{hardware} {\"display_name\":\"x\"}",
	},
	"PATCH /devices/current": {"/devices/current {\"display_name\":\"x\"} {used}"},
}

// idParameters are the parameters that carry an id, and their form in a probe. otherParameters carry none.
var idParameters = map[string]string{
	"device_id": "/{device}", "devices": "devices={device}", "assignment_id": "assignment_id={assignment}", "cursor": "cursor={cursor}",
	"external_ref": "external_ref={tag}", "label": "label={tag}",
	"metadata": "metadata.site={tag}", "Idempotency-Key": " {used}",
}

var otherParameters = []string{
	"max_age", "labels", "excel", "from", "to", "last", "limit", "shape", "min", "type", "night", "from_night", "to_night", "interval", "time_zone", "fill", "metrics", "columns", "include", "since", "wait", "key",
	"If-None-Match",
}

// A new route or parameter fails this test until probes has it.
func TestProbesAreComplete(t *testing.T) {
	t.Parallel()
	var described []string
	for _, route := range api.RouteTable() {
		operation, versioned := api.Operation(route)
		if !versioned {
			continue
		}
		paths := probes[strings.Replace(operation, "HEAD ", "GET ", 1)]
		require.NotEmpty(t, paths, operation)
		described = append(described, operation)
		if !slices.Contains(openapitest.API().Operations(), operation) {
			continue // A route that only refuses.
		}
		for _, p := range openapitest.API().Parameters(operation) {
			if !slices.Contains(otherParameters, p.Name) {
				require.NotEmpty(t, idParameters[p.Name], "%s: does %s carry an id?", operation, p.Name)
				require.Contains(t, strings.Join(paths, "\n"), idParameters[p.Name], operation)
			}
		}
	}
	for operation := range probes {
		require.Contains(t, described, operation)
	}
}

// The response to an id of another team equals that to an id that does not exist, but for the request id.
func TestTenancy(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 1, team", "spec 1, key", "spec 5, rule 2", "spec 4, readings, rule 4, not_found",
		"spec 4, readings, rule 4, alike", "spec 4, device, not_found", "spec 7, status_404", "spec 7, device_not_found",
		"spec 7, assignment_not_found", "decision 31 a", "decision 31 b", "decision 34 f", "decision 23 a")
	f := setup(t)
	other := f.addOtherTeam(t)
	for _, route := range api.RouteTable() {
		operation, versioned := api.Operation(route)
		if !versioned {
			continue
		}
		method, path, _ := strings.Cut(operation, " ")
		foreign, absent := other.foreignIDs(t, path), other.absentIDs(path)
		distinct := path == "/team" || method == http.MethodPatch // The one takes no ids, the other would change data.
		for _, probe := range probes[strings.Replace(operation, "HEAD ", "GET ", 1)] {
			f.resetRateLimits(t)
			want, got := f.probe(t, method, probe, absent, f.key), f.probe(t, method, probe, foreign, f.key)
			require.Equal(t, want, got, "%s %s", operation, probe)
			// To the other team they differ, so that the probe is a test at all.
			distinct = distinct || f.probe(t, method, probe, absent, other.key) != f.probe(t, method, probe, foreign, other.key)
		}
		require.True(t, distinct, operation)
	}
	require.Equal(t, 1, f.count(t, `SELECT count(*) FROM devices WHERE id = $1 AND display_name = 'theirs'`, other.device), "no change")

	// On the same path, an Idempotency-Key does not replay the response of another API key.
	request := func(key string) response {
		return f.do(t, http.MethodPatch, "/devices/"+other.device.String(), otherTeamBody, asJSON, withKey(key), idempotencyKey("used"))
	}
	require.Equal(t, "true", request(other.key).header.Get("Idempotent-Replayed"))
	request(f.key).requireError(t, roomsensor.CodeDeviceNotFound, "device_id")

	// Lists and the export have the devices of one team.
	for _, path := range []string{"/devices", "/devices/current", "/assignments", "/nights?night=2026-11-19", "/nights.csv?night=2026-11-19", "/coverage", "/readings.csv", "/aggregates.csv?interval=1h"} {
		own, theirs := string(f.get(t, path).body), string(f.get(t, path, withKey(other.key)).body)
		require.Contains(t, own, deviceID.String(), path)
		require.NotContains(t, own, other.device.String(), path)
		require.Contains(t, theirs, other.device.String(), path)
		require.NotContains(t, theirs, deviceID.String(), path)
	}
	require.NotEqual(t, string(f.get(t, "/team").body), string(f.get(t, "/team", withKey(other.key)).body))
	f.patch(t, `{"team_id":"`+teamID.String()+`"}`).requireInvalid(t, "team_id")
}

const otherTeamBody = `{"display_name":"theirs","metadata":{"site":"theirs","theirs":"x"}}`

// otherTeam is a second team with two devices, of which one has readings and assignments.
type otherTeam struct {
	*fixture
	key           string
	device        uuid.UUID
	ownAssignment uuid.UUID // of the fixture's team
	sealer        *cursor.Sealer
}

func (f *fixture) addOtherTeam(t *testing.T) *otherTeam {
	t.Helper()
	o := &otherTeam{fixture: f, device: testID(0xde, 2), ownAssignment: testID(0xa5, 1)}
	team, second := testID(0x7e, 2), testID(0xde, 3)
	f.addTeam(t, team)
	f.addReadings(t, deviceID, start.Add(-time.Hour), 3)
	f.addAssignment(t, deviceID, o.ownAssignment, start.Add(-10*time.Hour), nil)
	f.addDevice(t, team, o.device, "dev:2")
	f.addDevice(t, team, second, "dev:3")
	f.addReadings(t, o.device, start.Add(-time.Hour), 3)
	f.addAssignment(t, o.device, testID(0xa5, 3), start.Add(-9*time.Hour), new(start.Add(-3*time.Hour)))
	f.addAssignment(t, o.device, testID(0xa5, 2), start.Add(-2*time.Hour), nil)
	f.addAssignment(t, second, testID(0xa5, 4), start.Add(-9*time.Hour), nil)
	f.exec(t, `UPDATE assignments SET (label, external_ref) = ('theirs', 'theirs') WHERE device_id = $1`, o.device)
	o.key = f.addKey(t, roomsensor.Key{TeamID: team, Scope: roomsensor.ScopeReadWrite})
	for _, device := range []uuid.UUID{o.device, second} {
		f.do(t, http.MethodPatch, "/devices/"+device.String(), otherTeamBody, asJSON, withKey(o.key), idempotencyKey("used")).requireOK(t)
	}
	// One more tag would be one too many.
	f.exec(t, `UPDATE devices SET metadata = metadata || (SELECT jsonb_object_agg('k' || i, '') FROM generate_series(3, 50) i) WHERE id = $1`, o.device)
	secret, err := f.store.CursorSecret(t.Context())
	require.NoError(t, err)
	o.sealer, err = cursor.NewSealer(secret)
	require.NoError(t, err)
	return o
}

// cursorEndpoints are the lists, by their path in the OpenAPI document.
var cursorEndpoints = map[string]cursor.Endpoint{
	"/devices": cursor.Devices, "/devices/current": cursor.CurrentDevices,
	"/devices/{device_id}/assignments": cursor.Assignments, "/devices/{device_id}/readings": cursor.Readings,
	"/devices/{device_id}/gaps": cursor.Gaps, "/coverage": cursor.Coverage,
	"/assignments":                    cursor.TeamAssignments,
	"/nights":                         cursor.Nights,
	"/readings/changes":               cursor.Changes,
	"/devices/{device_id}/aggregates": cursor.Aggregates,
}

// foreignIDs replaces the placeholders of a probe by ids of the other team.
func (o *otherTeam) foreignIDs(t *testing.T, path string) *strings.Replacer {
	t.Helper()
	next := "none"
	if cursorEndpoints[path] != 0 {
		pages := strings.ReplaceAll(path, "{device_id}", o.device.String())
		query := "?limit=1"
		if strings.HasSuffix(path, "/aggregates") {
			query += "&interval=1h"
		}
		next = *decode[list[struct{}]](t, o.get(t, pages+query, withKey(o.key))).NextCursor
	}
	return o.replacer(testID(0x7e, 2), o.device, testID(0xa5, 2), "dev:2", "theirs", "used", next)
}

// absentIDs replaces them by ids that do not exist. The cursor is a valid one of an API key that does not exist.
func (o *otherTeam) absentIDs(path string) *strings.Replacer {
	next := "none"
	if endpoint := cursorEndpoints[path]; endpoint != 0 {
		state := &cursor.State{
			Endpoint: endpoint, KeyID: "nobody", IssuedAt: start, Limit: 1, Window: roomsensor.Window{From: start, To: start},
		}
		if strings.Contains(path, "{") {
			state.Device = testID(9, 1)
		}
		next = o.sealer.Seal(state)
	}
	return o.replacer(testID(9, 3), testID(9, 1), testID(9, 2), "dev:9", "nobody", "unused", next)
}

func (o *otherTeam) replacer(team, device, assignment uuid.UUID, hardware, tag, used, next string) *strings.Replacer {
	return strings.NewReplacer("{own}", deviceID.String(), "{ownAssignment}", o.ownAssignment.String(), "{team}", team.String(),
		"{device}", device.String(), "{assignment}", assignment.String(), "{hardware}", hardware, "{tag}", tag, "{used}", used,
		"{cursor}", url.QueryEscape(next))
}

// volatile matches what differs between two responses to the same request.
var volatile = regexp.MustCompile(`(?m)^(Date|X-Request-Id|Ratelimit-Remaining|Ratelimit-Reset): .*$|"request_id":"[^"]*"`)

// probe sends a probe (path, body, Idempotency-Key) and returns the response as text.
func (f *fixture) probe(t *testing.T, method, probe string, ids *strings.Replacer, key string) string {
	t.Helper()
	fields := append(strings.Fields(ids.Replace(probe)), "", "")
	options := []option{withKey(key)}
	if method == http.MethodPatch {
		options = append(options, asJSON)
	}
	if fields[2] != "" {
		options = append(options, idempotencyKey(fields[2]))
	}
	got := f.do(t, method, fields[0], fields[1], options...)
	return volatile.ReplaceAllString(http.StatusText(got.status)+"\n"+string(got.text()), "")
}
