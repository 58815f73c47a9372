package api_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
	"roomsensor/test/openapitest"
)

// badInput is what a request contains to fail a check, and the error that it causes.
type badInput struct {
	text  string // its meaning depends on the check
	code  roomsensor.Code
	param string // empty is null
}

// check is a step of decision 22. Its inputs fail it in different ways.
type check struct {
	name   string
	covers string
	inputs []badInput
}

// operation is an operation of the OpenAPI document with its checks in the order of decision 22.
type operation struct {
	name   string
	checks []check
	// build returns a request. fails returns the input with which it has to fail a check, if it has to.
	build func(fails func(check string) (badInput, bool)) request
}

// request is a request to a path below {base_url}.
type request struct {
	method, path, body string
	options            []option
}

func (f *fixture) send(t testingT, r request) response {
	t.Helper()
	return f.do(t, r.method, r.path, r.body, r.options...)
}

const invalid = roomsensor.CodeValidationFailed

// admissionChecks are the first checks of every operation.
func (f *fixture) admissionChecks(t *testing.T, covers ...string) []check {
	t.Helper()
	return []check{
		{"route", covers[0], []badInput{{"/none/none", roomsensor.CodeNotFound, ""}, {"/", roomsensor.CodeNotFound, ""}}},
		{"method", covers[0], []badInput{
			{"POST", roomsensor.CodeMethodNotAllowed, ""},
			{"DELETE", roomsensor.CodeMethodNotAllowed, ""},
			{"BREW", roomsensor.CodeMethodNotAllowed, ""},
		}},
		{"key", covers[1], []badInput{
			{wrongSecret(f.key), roomsensor.CodeAPIKeyInvalid, ""},
			{f.revokedKey(t), roomsensor.CodeAPIKeyRevoked, ""},
			{f.expiredKey(t), roomsensor.CodeAPIKeyExpired, ""},
			{"", roomsensor.CodeAPIKeyMissing, ""},
		}},
		{"rate", covers[2], []badInput{{"", roomsensor.CodeRateLimitExceeded, ""}}},
	}
}

var pathID = check{"path id", "", []badInput{
	{"dev:1", invalid, "device_id"}, {"x", invalid, "device_id"}, {"{" + deviceID.String() + "}", invalid, "device_id"},
}}

// admit applies the first checks to a request.
func (r request) admit(fails func(string) (badInput, bool), keys map[string]string) request {
	if in, ok := fails("route"); ok {
		path, query, _ := strings.Cut(r.path, "?")
		r.path = path + in.text + "?" + query
	}
	if in, ok := fails("method"); ok {
		r.method = in.text
	}
	kind := "write"
	if _, ok := fails("scope"); ok {
		kind = "read"
	}
	if _, ok := fails("rate"); ok {
		kind += " limited"
	}
	key := withKey(keys[kind])
	if in, ok := fails("key"); ok {
		key = withKey(in.text)
		if in.text == "" {
			key = withoutKey
		}
	}
	r.options = append(r.options, key)
	return r
}

// operations returns every operation of the API. The database holds what their requests need.
func (f *fixture) operations(t *testing.T) []operation {
	t.Helper()
	keys := map[string]string{
		"read": f.readKey, "write": f.key,
		"read limited": f.limitedKey(t, roomsensor.ScopeRead), "write limited": f.limitedKey(t, roomsensor.ScopeReadWrite),
	}
	f.fillLists(t, 2)
	all := []operation{f.patchOperation(t, keys), f.exportOperation(t, keys), f.parquetOperation(t, keys), f.aggregatesOperation(t, keys)}
	for path, names := range map[string][]string{
		"/team":                            {"parameter"},
		"/devices":                         {"parameter", "cursor"},
		"/devices/current":                 {"parameter", "cursor"},
		"/devices/{device_id}":             {"path id", "parameter", "device"},
		"/devices/{device_id}/assignments": {"path id", "parameter", "cursor", "device"},
		"/devices/{device_id}/readings":    {"path id", "window", "cursor", "device", "assignment"},
		"/devices/{device_id}/gaps":        {"path id", "window", "cursor", "device", "assignment"},
		"/coverage":                        {"window", "cursor"},
		"/metrics":                         {"parameter"},
		"/assignments":                     {"assignments", "cursor"},
		"/nights":                          {"nights", "cursor"},
		"/nights.csv":                      {"nights"},
		"/readings/changes":                {"since", "cursor", "devices"},
		"/devices/{device_id}/aggregates":  {"path id", "buckets", "cursor", "device", "assignment"},
	} {
		all = append(all, operation{"GET " + path, f.getChecks(t, names...), func(fails func(string) (badInput, bool)) request {
			device := deviceID.String()
			if _, ok := fails("device"); ok {
				device = unknownID
			}
			if in, ok := fails("path id"); ok {
				device = in.text
			}
			r := request{method: http.MethodGet, path: strings.Replace(path, "{device_id}", device, 1) + "?" + queryOf(fails)}
			if strings.HasSuffix(path, "/aggregates") {
				r.path += "&interval=1h"
			}
			return r.admit(fails, keys)
		}})
	}
	return all
}

// getChecks returns the checks of a GET: admission and the named ones.
func (f *fixture) getChecks(t *testing.T, names ...string) []check {
	t.Helper()
	checks := f.admissionChecks(t, "decision 22 b 3", "decision 22 b 3", "decision 22 b 3")
	for _, c := range []check{
		{"path id", "decision 22 b 4", pathID.inputs},
		{"parameter", "decision 22 b 5", []badInput{
			{"limit=0", invalid, "limit"},
			{"limit=1001", invalid, "limit"},
			{"x=1", invalid, "x"},
			{"x=%zz", invalid, ""},
			{"limit=1&limit=1", invalid, "limit"},
			{"=", invalid, ""},
		}},
		{"window", "decision 22 b 5", []badInput{
			{"last=91d", roomsensor.CodeTimeRangeTooWide, "last"},
			{"last=x", roomsensor.CodeTimeRangeInvalid, "last"},
			{"from=2026-11-20", roomsensor.CodeTimeRangeInvalid, "from"},
			{"to=x", roomsensor.CodeTimeRangeInvalid, "to"},
			{"limit=0", invalid, "limit"},
			{"shape=x", invalid, "shape"},
			{"min=x", invalid, "min"},
			{"metrics=x", invalid, "metrics"},
			{"columns=id", invalid, "columns"},
			{"include=x", invalid, "include"},
			{"x=%zz", invalid, ""},
		}},
		{"assignments", "decision 22 b 5", []badInput{
			{"last=3661d", roomsensor.CodeTimeRangeTooWide, "last"},
			{"from=2026-11-20", roomsensor.CodeTimeRangeInvalid, "from"},
			{"type=person", invalid, "type"},
			{"external_ref=", invalid, "external_ref"},
			{"label=%00", invalid, "label"},
			{"limit=0", invalid, "limit"},
		}},
		{"nights", "decision 22 b 5", []badInput{
			{"night=2026-11-31", invalid, "night"},
			{"from_night=2026-11-19T00:00:00Z", invalid, "from_night"},
			{"to_night=x", invalid, "to_night"},
			{"external_ref=%ff", invalid, "external_ref"},
			{"x=%zz", invalid, ""},
		}},
		{"since", "decision 22 b 5", []badInput{
			{"since=x", roomsensor.CodeTimeRangeInvalid, "since"},
			{"wait=31", invalid, "wait"},
			{"limit=0", invalid, "limit"},
			{"devices=x", invalid, "devices"},
			{"x=%zz", invalid, ""},
		}},
		{"buckets", "decision 22 b 5", []badInput{
			{"last=401d", roomsensor.CodeTimeRangeTooWide, "last"},
			{"to=x", roomsensor.CodeTimeRangeInvalid, "to"},
			{"time_zone=utc", invalid, "time_zone"},
			{"metrics=", invalid, "metrics"},
			{"limit=0", invalid, "limit"},
			{"fill=1", invalid, "fill"},
			{"interval=1d", invalid, "interval"}, // Twice.
		}},
		{"cursor", "decision 22 b 6", []badInput{
			{"cursor=x", roomsensor.CodeCursorInvalid, "cursor"},
			{"cursor=", roomsensor.CodeCursorInvalid, "cursor"},
			{"cursor=AfDDVwbVRfzagjvYv7zEs3LJgw28cUYs0k4q", roomsensor.CodeCursorInvalid, "cursor"},
		}},
		{"device", "decision 22 b 7", []badInput{{"", roomsensor.CodeDeviceNotFound, "device_id"}}},
		{"devices", "decision 22 b 7", []badInput{
			{"devices=" + deviceID.String() + "," + unknownID, roomsensor.CodeDeviceNotFound, "devices"},
			{"devices=" + unknownID, roomsensor.CodeDeviceNotFound, "devices"},
		}},
		{"assignment", "decision 22 b 8", []badInput{{"assignment_id=" + unknownID, roomsensor.CodeAssignmentNotFound, "assignment_id"}}},
		{"size", "decision 22 b 8", []badInput{{"shape=wide", roomsensor.CodeCSVTooLarge, ""}}},
		{"lines", "decision 22 b 8", []badInput{{"fill=true&from=2026-10-01T00:00:00Z", roomsensor.CodeCSVTooLarge, ""}}},
	} {
		if slices.Contains(names, c.name) {
			checks = append(checks, c)
		}
	}
	return checks
}

// queryOf joins the parameters of the checks that fail.
func queryOf(fails func(string) (badInput, bool)) string {
	var query []string
	for _, name := range []string{"assignment", "devices", "cursor", "size", "lines", "since", "assignments", "nights", "window", "buckets", "parameter"} {
		if in, ok := fails(name); ok && in.text != "" {
			query = append(query, in.text)
		}
	}
	return strings.Join(query, "&")
}

// exportOperation is the export of a team with more devices than the wide shape may have.
func (f *fixture) exportOperation(t *testing.T, keys map[string]string) operation {
	t.Helper()
	f.addDevices(t, 1001)
	checks := f.getChecks(t, "window", "devices", "assignment", "size")
	return operation{"GET /readings.csv", checks, func(fails func(string) (badInput, bool)) request {
		return request{method: http.MethodGet, path: "/readings.csv?" + queryOf(fails)}.admit(fails, keys)
	}}
}

// parquetOperation is the export of the same team as Parquet, which has no limit of 1,000 devices.
func (f *fixture) parquetOperation(t *testing.T, keys map[string]string) operation {
	t.Helper()
	checks := f.getChecks(t, "window", "devices", "assignment")
	return operation{"GET /readings.parquet", checks, func(fails func(string) (badInput, bool)) request {
		return request{method: http.MethodGet, path: "/readings.parquet?" + queryOf(fails)}.admit(fails, keys)
	}}
}

// aggregatesOperation is the export of the aggregates of more than a thousand devices.
func (f *fixture) aggregatesOperation(t *testing.T, keys map[string]string) operation {
	t.Helper()
	checks := f.getChecks(t, "buckets", "devices", "assignment", "lines")
	return operation{"GET /aggregates.csv", checks, func(fails func(string) (badInput, bool)) request {
		return request{method: http.MethodGet, path: "/aggregates.csv?" + queryOf(fails) + "&interval=1h"}.admit(fails, keys)
	}}
}

// patchOperation is PATCH. The checks of idempotency, device and tags choose among devices that the key "used" has
// changed: an existing one, a deleted one and one with 50 tags.
func (f *fixture) patchOperation(t *testing.T, keys map[string]string) operation {
	t.Helper()
	full, deleted := testID(0xdf, 1), testID(0xdf, 2)
	f.addDevice(t, teamID, full, "dev:5001")
	f.addDevice(t, teamID, deleted, "dev:5002")
	f.exec(t, `UPDATE devices SET metadata = (SELECT jsonb_object_agg('k' || i, 'v') FROM generate_series(1, 50) i) WHERE id = $1`, full)
	for _, id := range []uuid.UUID{deviceID, full, deleted} {
		f.do(t, http.MethodPatch, "/devices/"+id.String(), `{"metadata":{}}`, asJSON, idempotencyKey("used")).requireOK(t)
	}
	f.exec(t, `DELETE FROM devices WHERE id = $1`, deleted)
	checks := append(f.admissionChecks(t, "decision 22 c", "decision 22 a 2", "decision 22 a 3"), []check{
		{"scope", "decision 22 a 4", []badInput{{"", roomsensor.CodeInsufficientScope, ""}}},
		{"path id", "decision 22 a 5", pathID.inputs},
		{"condition", "decision 22 a 6", []badInput{{"If-Match", invalid, "If-Match"}, {"If-Unmodified-Since", invalid, "If-Unmodified-Since"}}},
		{"header", "decision 22 a 6", []badInput{{"text/plain", invalid, "Content-Type"}, {"", invalid, "Content-Type"}}},
		{"parameter", "decision 22 a 6", []badInput{{"x=1", invalid, "x"}, {"limit=1", invalid, "limit"}, {"%zz", invalid, ""}}},
		{"size", "decision 22 a 7", []badInput{{strings.Repeat(" ", 64<<10), roomsensor.CodeRequestTooLarge, ""}}},
		{"assignment", "decision 22 a 8", []badInput{
			{`,"assignment":1`, roomsensor.CodeNotImplemented, "assignment"}, {`,"assignment":null`, roomsensor.CodeNotImplemented, "assignment"},
		}},
		{"body", "decision 22 a 9", []badInput{
			{`,"unknown":1`, invalid, "unknown"},
			{`,"display_name":1`, invalid, "display_name"},
			{`,"display_name":""`, invalid, "display_name"},
			{`,"metadata":{}`, invalid, "metadata"},
		}},
		{"idempotency", "decision 22 a 10", []badInput{{"used", invalid, "Idempotency-Key"}}},
		{"device", "decision 22 a 11", []badInput{{"", roomsensor.CodeDeviceNotFound, "device_id"}}},
		{"tags", "decision 22 a 11", []badInput{{"", invalid, "metadata"}}},
	}...)
	return operation{"PATCH /devices/{device_id}", checks, func(fails func(string) (badInput, bool)) request {
		_, noDevice := fails("device")
		_, used := fails("idempotency")
		_, tags := fails("tags")
		id := deviceID.String()
		switch {
		case noDevice && used:
			id = deleted.String()
		case noDevice:
			id = unknownID
		case tags:
			id = full.String()
		}
		if in, ok := fails("path id"); ok {
			id = in.text
		}
		parameter, _ := fails("parameter")
		unknown, _ := fails("body")
		assignment, _ := fails("assignment")
		spaces, _ := fails("size")
		r := request{
			method: http.MethodPatch, path: "/devices/" + id + "?" + parameter.text,
			body: `{"metadata":{"one":"more"}` + unknown.text + assignment.text + spaces.text + "}",
		}
		contentType := "application/json"
		if in, ok := fails("header"); ok {
			contentType = in.text
		}
		r.options = append(r.options, setHeader("Content-Type", contentType))
		if in, ok := fails("condition"); ok {
			r.options = append(r.options, setHeader(in.text, "x"))
		}
		if used {
			r.options = append(r.options, idempotencyKey("used"))
		}
		return r.admit(fails, keys)
	}}
}

// requireFirst sends a request that fails a set of checks, each with one of its inputs, and requires the error of the
// first. A request that fails none succeeds. checks are in the order of decision 22.
func (f *fixture) requireFirst(t testingT, o operation, failing map[string]badInput) {
	t.Helper()
	r := o.build(func(name string) (badInput, bool) {
		in, ok := failing[name]
		return in, ok
	})
	got := f.send(t, r)
	first := slices.IndexFunc(o.checks, func(c check) bool { _, ok := failing[c.name]; return ok })
	if first < 0 {
		got.requireOK(t)
	} else {
		want := failing[o.checks[first].name]
		got.requireError(t, want.code, want.param)
	}
	if r.method == http.MethodGet {
		r.method = http.MethodHead
		require.Equal(t, got.status, f.send(t, r).status)
	}
	// Keys that are at their limit stay there.
	f.exec(t, `DELETE FROM rate_counters WHERE passed - over < 600`)
}

// Of two checks that fail, and of all that fail from one on, the first determines the response (decision 22).
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, o := range f.operations(t) {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			f.requireFirst(t, o, nil)
			for i, first := range o.checks {
				conformance.Covers(t, first.covers)
				rest := map[string]badInput{}
				for _, second := range o.checks[i:] {
					rest[second.name] = second.inputs[0]
					f.requireFirst(t, o, map[string]badInput{first.name: first.inputs[0], second.name: second.inputs[0]})
				}
				f.requireFirst(t, o, rest)
			}
		})
	}
}

// Any set of checks may fail, in any way: the first determines the response, and every response is one of the OpenAPI
// document. Every operation of the document is tested.
func TestRandomRequests(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 22 a 6", "decision 22 b 5", "decision 22 b 6")
	f := setup(t)
	var tested []string
	for _, o := range f.operations(t) {
		tested = append(tested, o.name)
		if path, ok := strings.CutPrefix(o.name, "GET "); ok {
			tested = append(tested, "HEAD "+path)
		}
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				failing := map[string]badInput{}
				n := rapid.IntRange(0, len(o.checks)).Draw(rt, "checks that fail")
				for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(o.checks)-1), n, n).Draw(rt, "which") {
					failing[o.checks[i].name] = rapid.SampledFrom(o.checks[i].inputs).Draw(rt, o.checks[i].name)
				}
				f.requireFirst(rt, o, failing)
			})
		})
	}
	require.ElementsMatch(t, openapitest.API().Operations(), tested)
}

// A replay precedes the checks that an update would fail, and follows those of the key and the scope.
func TestOrderOfAReplay(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 22 a 2", "decision 22 a 4", "decision 22 a 10")
	f := setup(t)
	const body = `{"metadata":{"one":"more"}}`
	used := idempotencyKey("used")
	first := f.patch(t, body, used).requireOK(t)
	f.exec(t, `UPDATE devices SET metadata = (SELECT jsonb_object_agg('k' || i, 'v') FROM generate_series(1, 50) i)`)
	require.Equal(t, string(first.body), string(f.patch(t, body, used).body), "before the 50 keys")
	f.patch(t, `{"metadata":{"two":"more"}}`, used).requireInvalid(t, "Idempotency-Key")
	f.exec(t, `DELETE FROM devices`)
	require.Equal(t, string(first.body), string(f.patch(t, body, used).body), "before the device")
	f.patch(t, body, used, withKey(f.readKey)).requireError(t, roomsensor.CodeInsufficientScope, "")
	f.patch(t, body, used, withKey(wrongSecret(f.key))).requireError(t, roomsensor.CodeAPIKeyInvalid, "")
}

// FuzzRequest sends any query and body to any operation of the OpenAPI document. The response is one of the document,
// a change reads back, and nothing fails.
func FuzzRequest(f *testing.F) {
	s := setup(f)
	s.exec(f, `UPDATE devices SET metadata = '{"site":"north"}'`)
	s.addReadings(f, deviceID, start.Add(-10*time.Hour), 120)
	s.addAssignment(f, deviceID, testID(0xa5, 1), start.Add(-5*time.Hour), nil)
	operations := openapitest.API().Operations()
	for i := range operations {
		for _, query := range []string{
			"", "limit=1", "cursor=AfDDVwbVRfzagjvYv7zEs3LJgw28cUYs0k4q", "from=2026-11-20T00:00:00Z&to=2026-11-20T10:00:00.123456789Z",
			"to=0000-01-01T00:00:00Z", "to=9999-12-31T23:59:59Z", "last=00000000000000000001m", "last=9223372036854775807d",
			"metadata.site=north", "metadata.%00=%ff", "shape=wide&devices=" + deviceID.String(), "key=rsk_a_b",
			"shape=wide&columns=id&metrics=lux,co2_ppm&metadata.site=north", "include=ingested_at&metrics=spl_db", "k%65y=%zz&key",
			"interval=1h", "interval=1d&time_zone=Europe/Berlin&metrics=lux&last=3660d", "interval=1d&time_zone=Asia/Kathmandu&to=9999-12-31T23:59:59Z",
			"interval=1d&time_zone=America/New_York&to=0000-01-01T00:00:00Z&fill=true", "interval=1h&assignment_id=" + testID(0xa5, 1).String(),
		} {
			f.Add(uint8(i), query, "", "gzip;q=0.5", `W/"x", *`)
		}
		for _, body := range []string{
			`{"display_name":"x"}`, `{"display_name":null,"metadata":{"a":"b","c":null}}`, `{"metadata":null}`, `{"assignment":1}`, `{`,
			`{"display_name":"\ud800"}`, "{\"metadata\":{\"a\":\"\xff\"}}", `{"metadata":{"a":"\u0000"}}`, `{"metadata":{"a":1,"a":2}}`,
			`{"display_name":"=\u200f🏠"} {}`, `{"metadata":{"0":"0","1":"1"}}`,
		} {
			f.Add(uint8(i), "", body, "", "")
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, query, body, accept, match string) {
		method, path, _ := strings.Cut(operations[int(which)%len(operations)], " ")
		path = "/v1" + strings.ReplaceAll(path, "{device_id}", deviceID.String())
		got := s.serveDirectly(t, method, path, query, body, setHeader("Accept-Encoding", accept), setHeader("If-None-Match", match))
		if method == http.MethodPatch && got.status == http.StatusOK {
			require.Equal(t, string(got.body), string(s.serveDirectly(t, http.MethodGet, path, "", "").body))
			s.serveDirectly(t, http.MethodGet, "/v1/readings.csv", "shape=wide", "")
		}
		s.resetRateLimits(t)
	})
}

// serveDirectly calls the handler without a network in between. The response must be a documented one, below 500.
func (f *fixture) serveDirectly(t testing.TB, method, path, query, body string, options ...option) response {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	request.URL.RawQuery = query
	for _, option := range append([]option{withKey(f.key), asJSON}, options...) {
		option(request)
	}
	recorder := httptest.NewRecorder()
	f.server.Config.Handler.ServeHTTP(recorder, request)
	got := response{request: request, status: recorder.Code, header: recorder.Header(), body: recorder.Body.Bytes()}
	require.NoError(t, got.check())
	require.True(t, got.status < 500 || got.code() == roomsensor.CodeNotImplemented, "%d %s", got.status, f.log)
	f.log.Reset()
	return got
}
