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
	"roomsensor/internal/conformance"
	"roomsensor/internal/cursor"
	"roomsensor/internal/openapitest"
	"roomsensor/internal/roomsensor"
)

// probes are, for every operation, requests with what may be another team's or nobody's: {team}, {device}, {hardware},
// {assignment}, {tag}, a {cursor} of this list and a {once}, an Idempotency-Key that was used. {own} and {ownBlock} are
// the asking team's.
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
		"/devices/{device}/readings?assignment_id={ownBlock}", "/devices/{device}/readings?cursor={cursor}", "/devices/{hardware}/readings",
		"/devices/{own}/readings?assignment_id={assignment}", "/devices/{own}/readings?assignment_id={assignment}&last=1h",
		"/devices/{own}/readings?assignment_id={device}", "/devices/{own}/readings?assignment_id={hardware}",
		"/devices/{own}/readings?cursor={cursor}", "/devices/{own}/readings?cursor={cursor}&assignment_id={assignment}",
	},
	"GET /readings.csv": {
		"/readings.csv?devices={device}", "/readings.csv?devices={own},{device}", "/readings.csv?devices={device},{own}",
		"/readings.csv?devices={device}&shape=wide", "/readings.csv?devices={own},{hardware}", "/readings.csv?devices={assignment}",
		"/readings.csv?assignment_id={assignment}", "/readings.csv?assignment_id={assignment}&shape=wide&last=1h",
		"/readings.csv?assignment_id={assignment}&devices={own}", "/readings.csv?assignment_id={assignment}&devices={device}",
		"/readings.csv?assignment_id={ownBlock}&devices={device}", "/readings.csv?assignment_id={hardware}", "/readings.csv?cursor={cursor}",
	},
	"PATCH /devices/{device_id}": {
		"/devices/{device} {\"display_name\":\"x\"}", "/devices/{device} {\"metadata\":{\"one\":\"more\"}}", "/devices/{device} {\"assignment\":1}", "/devices/{device} {}",
		"/devices/{device} {\"display_name\":\"x\"} {once}", "/devices/{own} {\"display_name\":\"x\"} {once}", "/devices/{hardware} {\"display_name\":\"x\"}",
	},
	"PATCH /devices/current": {"/devices/current {\"display_name\":\"x\"} {once}"},
}

// named are the parameters that carry an id, and what stands for it in a probe. Those of plain carry none.
var named = map[string]string{
	"device_id": "/{device}", "devices": "devices={device}", "assignment_id": "assignment_id={assignment}", "cursor": "cursor={cursor}",
	"metadata": "metadata.site={tag}", "Idempotency-Key": " {once}",
}

var plain = []string{"from", "to", "last", "limit", "shape", "key", "If-None-Match"}

// A route, or a parameter, that is new fails here until there is a probe of it.
func TestEveryRouteHasProbes(t *testing.T) {
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
			continue // It is there to refuse.
		}
		for _, p := range openapitest.API().Parameters(operation) {
			if !slices.Contains(plain, p.Name) {
				require.NotEmpty(t, named[p.Name], "%s: does %s carry an id?", operation, p.Name)
				require.Contains(t, strings.Join(paths, "\n"), named[p.Name], operation)
			}
		}
	}
	for operation := range probes {
		require.Contains(t, described, operation)
	}
}

// What belongs to another team and what never was give the same bytes but for the request's id. To the other team they
// are different things.
func TestAnotherTeamsIDsAreThoseOfNobody(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 1, one team", "spec 1, team of the key", "spec 5, rule 2", "spec 4, readings, rule 4",
		"spec 4, GET /devices/{device_id}, 404", "spec 7, status 404", "decision 31.1", "decision 23.1")
	f := setup(t)
	theirs := f.neighbours(t)
	for _, route := range api.RouteTable() {
		operation, versioned := api.Operation(route)
		if !versioned {
			continue
		}
		method, path, _ := strings.Cut(operation, " ")
		foreign, absent := theirs.foreign(t, path), theirs.absent(path)
		told := path == "/team" || method == http.MethodPatch // The one takes no ids, the other would change them.
		for _, probe := range probes[strings.Replace(operation, "HEAD ", "GET ", 1)] {
			f.forgetRequests(t)
			want, got := f.probe(t, method, probe, absent, f.key), f.probe(t, method, probe, foreign, f.key)
			require.Equal(t, want, got, "%s %s", operation, probe)
			told = told || f.probe(t, method, probe, absent, theirs.key) != f.probe(t, method, probe, foreign, theirs.key)
		}
		require.True(t, told, operation)
	}
	require.Equal(t, "theirs", theirs.name(t), "no change of another team's device")
}

// An Idempotency-Key, too, is of the key of the API that it came with: on the very same path it replays no other team's
// answer, though its device does not exist for who asks.
func TestAnotherTeamsIdempotencyKeyReplaysNothing(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23.1")
	f := setup(t)
	theirs := f.neighbours(t)
	request := func(key string) response {
		return f.do(t, http.MethodPatch, "/devices/"+theirs.device.String(), theirs.body, asJSON, withKey(key), header("Idempotency-Key", "used"))
	}
	require.Equal(t, "true", request(theirs.key).header.Get("Idempotent-Replayed"))
	request(f.key).requireError(t, roomsensor.CodeDeviceNotFound, "device_id")
	require.Equal(t, "true", request(theirs.key).header.Get("Idempotent-Replayed"))
}

// neighbours is another team, with one of everything.
type neighbours struct {
	*fixture
	key, body           string
	team, device, block uuid.UUID
	ownBlock            uuid.UUID // of the fixture's team
	sealer              *cursor.Sealer
}

func (f *fixture) neighbours(t *testing.T) *neighbours {
	t.Helper()
	n := &neighbours{
		fixture: f, team: number(0x7e, 2), device: number(0xde, 2), block: number(0xa5, 2), ownBlock: number(0xa5, 1),
		body: `{"display_name":"theirs","metadata":{"site":"theirs","theirs":"x"}}`,
	}
	f.addTeam(t, n.team)
	f.addReadings(t, deviceID, start.Add(-time.Hour), 3)
	f.addAssignment(t, deviceID, n.ownBlock, start.Add(-2*time.Hour), nil)
	f.addDevice(t, n.team, n.device, "dev:2")
	f.addDevice(t, n.team, number(0xde, 3), "dev:3")
	f.addReadings(t, n.device, start.Add(-time.Hour), 3)
	f.addAssignment(t, n.device, number(0xa5, 3), start.Add(-9*time.Hour), new(start.Add(-3*time.Hour)))
	f.addAssignment(t, n.device, n.block, start.Add(-2*time.Hour), nil)
	n.key = f.addKey(t, roomsensor.Key{TeamID: n.team, Scope: roomsensor.ScopeReadWrite})
	for _, device := range []uuid.UUID{n.device, number(0xde, 3)} {
		got := f.do(t, http.MethodPatch, "/devices/"+device.String(), n.body, asJSON, withKey(n.key), header("Idempotency-Key", "used"))
		require.Equal(t, http.StatusOK, got.status)
	}
	// One more tag would be one too many.
	f.exec(t, `UPDATE devices SET metadata = metadata || (SELECT jsonb_object_agg('k' || i, '') FROM generate_series(3, 50) i) WHERE id = $1`, n.device)
	secret, err := f.store.CursorSecret(t.Context())
	require.NoError(t, err)
	n.sealer, err = cursor.NewSealer(secret)
	require.NoError(t, err)
	return n
}

func (n *neighbours) name(t *testing.T) string {
	t.Helper()
	return decode[struct {
		Name string `json:"display_name"`
	}](t, n.get(t, "/devices/"+n.device.String(), withKey(n.key))).Name
}

// endpoints are the lists, by their path in the document.
var endpoints = map[string]cursor.Endpoint{
	"/devices": cursor.Devices, "/devices/current": cursor.CurrentDevices,
	"/devices/{device_id}/assignments": cursor.Assignments, "/devices/{device_id}/readings": cursor.Readings,
}

// foreign is what stands in a probe of a path for what the neighbours have.
func (n *neighbours) foreign(t *testing.T, path string) *strings.Replacer {
	t.Helper()
	next := "none"
	if endpoints[path] != 0 {
		pages := strings.ReplaceAll(path, "{device_id}", n.device.String())
		next = *decode[list[struct{}]](t, n.get(t, pages+"?limit=1", withKey(n.key))).NextCursor
	}
	return n.replacer(n.team, n.device, n.block, "dev:2", "theirs", "used", next)
}

// absent is the same of nobody; its cursor is one that the service could have made, for a key that never was.
func (n *neighbours) absent(path string) *strings.Replacer {
	next := "none"
	if endpoint := endpoints[path]; endpoint != 0 {
		walk := &cursor.Walk{Endpoint: endpoint, KeyID: "nobody", IssuedAt: start, Limit: 1}
		if strings.Contains(path, "{") {
			walk.Device = number(9, 1)
		}
		next = n.sealer.Seal(walk)
	}
	return n.replacer(number(9, 3), number(9, 1), number(9, 2), "dev:9", "nobody", "unused", next)
}

func (n *neighbours) replacer(team, device, block uuid.UUID, hardware, tag, once, next string) *strings.Replacer {
	return strings.NewReplacer("{own}", deviceID.String(), "{ownBlock}", n.ownBlock.String(), "{team}", team.String(),
		"{device}", device.String(), "{assignment}", block.String(), "{hardware}", hardware, "{tag}", tag, "{once}", once,
		"{cursor}", url.QueryEscape(next))
}

// passing is what two answers to the same request differ in: ids, clocks and counts of requests.
var passing = regexp.MustCompile(`(?m)^(Date|X-Request-Id|Ratelimit-Remaining|Ratelimit-Reset): .*$|"request_id":"[^"]*"`)

// probe sends a path, a body and an Idempotency-Key, as far as there are such, and returns the whole answer as text.
func (f *fixture) probe(t *testing.T, method, probe string, ids *strings.Replacer, key string) string {
	t.Helper()
	fields := append(strings.Fields(ids.Replace(probe)), "", "")
	options := []option{withKey(key)}
	if method == http.MethodPatch {
		options = append(options, asJSON)
	}
	if fields[2] != "" {
		options = append(options, header("Idempotency-Key", fields[2]))
	}
	got := f.do(t, method, fields[0], fields[1], options...)
	var text strings.Builder
	require.NoError(t, got.header.Write(&text))
	return passing.ReplaceAllString(http.StatusText(got.status)+"\n"+text.String()+"\n"+string(got.body), "")
}
