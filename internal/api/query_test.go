package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// parametersOf lists the parameters of every GET.
var parametersOf = map[string][]string{
	"/team": {}, "/devices": {"cursor", "limit", "metadata.a"}, "/devices/current": {"cursor", "limit", "metadata.a"},
	devicePath: {}, assignmentsPath: {"cursor", "limit"},
	readingsPath: {"from", "to", "last", "assignment_id", "cursor", "limit"},
	"/readings.csv": {
		"from", "to", "last", "assignment_id", "external_ref", "devices", "metadata.a", "shape", "metrics", "columns", "include", "time_zone",
		"excel", "key",
	},
	"/readings.parquet": {
		"from", "to", "last", "assignment_id", "external_ref", "devices", "metadata.a", "metrics", "include", "time_zone", "key",
	},
	aggregatesPath: {"interval", "time_zone", "metrics", "from", "to", "last", "assignment_id", "cursor", "limit"},
	"/assignments": {"from", "to", "last", "external_ref", "type", "label", "metadata.a", "cursor", "limit"},
	"/nights":      {"night", "from_night", "to_night", "external_ref", "metadata.a", "cursor", "limit"},
	"/nights.csv":  {"night", "from_night", "to_night", "external_ref", "metadata.a", "key"},
	"/aggregates.csv": {
		"interval", "time_zone", "metrics", "from", "to", "last", "assignment_id", "external_ref", "devices", "metadata.a", "fill",
		"excel", "key",
	},
}

// validValues has a valid value of every parameter.
var validValues = map[string]string{
	"from": "2026-11-20T08:00:00Z", "to": "2026-11-20T09:00:00Z", "last": "1h", "assignment_id": testID(0xa5, 1).String(),
	"cursor": "x", "limit": "1", "metadata.a": "b", "devices": deviceID.String(), "shape": "wide", "key": "x",
	"metrics": "lux", "columns": "id", "include": "ingested_at",
	"night": "2026-11-19", "from_night": "2026-11-19", "to_night": "2026-11-19",
	"external_ref": "x", "type": "place", "label": "x",
	"interval": "1h", "time_zone": "UTC", "fill": "true", "excel": "comma",
}

// requireInvalidQuery requires that GET of the endpoints that isFault selects, and PATCH, refuse a query.
func (f *fixture) requireInvalidQuery(t *testing.T, query, param string, isFault func(known []string) bool) {
	t.Helper()
	f.resetRateLimits(t)
	for path, known := range parametersOf {
		if isFault(known) {
			f.get(t, path+"?"+query).requireInvalid(t, param)
		}
	}
	f.do(t, http.MethodPatch, devicePath+"?"+query, `{"metadata":{"a":"b"}}`, asJSON).requireInvalid(t, param)
}

func everywhere([]string) bool { return true }

// Unknown, repeated, malformed and empty parameters (decision 6).
func TestStrictParameters(t *testing.T) {
	t.Parallel()
	f := setup(t)
	t.Run("unknown", f.testUnknownParameters)
	t.Run("sent twice", f.testRepeatedParameters)
	t.Run("malformed", f.testMalformedQueries)
	t.Run("empty", f.testEmptyParameters)
	t.Run("empty header", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 6 e")
		for _, name := range []string{"Idempotency-Key", "Content-Type"} {
			f.patch(t, `{"metadata":{}}`, setHeader(name, "")).requireInvalid(t, name)
			f.patch(t, `{"metadata":{}}`, setHeader(name, " \t")).requireInvalid(t, name)
		}
	})
	t.Cleanup(func() {
		require.Zero(t, f.count(t, `SELECT count(*) FROM devices WHERE metadata <> '{}'`), "no PATCH was applied")
	})
}

func (f *fixture) testUnknownParameters(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 6 a", "spec 8, paging, no_random_access")
	for name, value := range validValues {
		f.requireInvalidQuery(t, name+"="+value, name, func(known []string) bool { return !slices.Contains(known, name) })
	}
	paths := slices.Collect(maps.Keys(parametersOf))
	for i, name := range []string{
		"form", "device", "From", "LAST", "last ", " last", "last[]", "last\x00", "lаst", "metadata", "Metadata.a", "meta.a", "next_cursor", "*",
		"page", "offset", "skip", "start", "after", "before", "hardware_id", "team_id",
	} {
		f.get(t, paths[i%len(paths)]+"?"+url.QueryEscape(name)+"=1").requireInvalid(t, name)
		f.get(t, "/readings.csv?last=1h&"+url.QueryEscape(name)).requireInvalid(t, name)
	}
	f.requireInvalidQuery(t, "=1", "", everywhere)
	f.requireInvalidQuery(t, "%ff=x", "\uFFFD", everywhere)
	f.replica.do(t, http.MethodGet, "/docs?form=1&form=2&a;b=%zz", "").requireOK(t)
}

func (f *fixture) testRepeatedParameters(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 6 b")
	for path, known := range parametersOf {
		f.resetRateLimits(t)
		for _, name := range known {
			value := validValues[name]
			encoded := fmt.Sprintf("%%%X%s", name[0], name[1:])
			for _, query := range []string{
				name + "=" + value + "&" + name + "=" + value, name + "=" + value + "&" + name + "=", name + "&" + name,
				encoded + "=x&" + name + "=" + value, "&" + name + "=x&&" + name + "=y&",
			} {
				f.get(t, path+"?"+query).requireInvalid(t, name)
			}
		}
	}
	f.requireInvalidQuery(t, "x=1&x=1", "x", everywhere)
	f.get(t, "/devices?metadata.a=1&metadata.A=1&metadata.a.=1").requireOK(t)
}

func (f *fixture) testMalformedQueries(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 6 c")
	for _, query := range []string{
		"from=%zz", "%zz=1", "%zz", "from=%", "from=%4", "from=%4g", "limit=1&x=%", "a=1;b=2", "a;b", ";", "last=1h;", "x=1&x=1&%", "&%zz&", "=%",
	} {
		f.requireInvalidQuery(t, query, "", everywhere)
	}
	f.get(t, "/devices?metadata.%ff=x").requireInvalid(t, "metadata.\uFFFD")
	f.get(t, "/devices?metadata.a=%ff").requireInvalid(t, "metadata.a")
	f.get(t, "/devices?metadata.a=%00").requireOK(t)
	f.get(t, readingsPath+"?&&").requireOK(t)
}

func (f *fixture) testEmptyParameters(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 6 d")
	codes := map[string]roomsensor.Code{
		"from": roomsensor.CodeTimeRangeInvalid, "to": roomsensor.CodeTimeRangeInvalid, "last": roomsensor.CodeTimeRangeInvalid,
		"cursor": roomsensor.CodeCursorInvalid, "limit": invalid, "shape": invalid, "assignment_id": invalid, "devices": invalid,
		"night": invalid, "from_night": invalid, "to_night": invalid,
		"external_ref": invalid, "type": invalid, "label": invalid,
		"metrics": invalid, "columns": invalid, "include": invalid,
		"interval": invalid, "time_zone": invalid, "fill": invalid, "excel": invalid,
	}
	for path, known := range parametersOf {
		f.resetRateLimits(t)
		for _, name := range known {
			for _, query := range []string{name + "=", name, "&" + name + "&"} {
				if slices.Contains(known, "interval") && name != "interval" {
					query += "&interval=1h"
				}
				got := f.get(t, path+"?"+query)
				if code, refused := codes[name]; refused {
					got.requireError(t, code, name)
				} else {
					got.requireOK(t)
				}
			}
		}
	}
}

func TestLimitAndShape(t *testing.T) {
	t.Parallel()
	f := setup(t)
	conformance.Covers(t, "decision 9 f")
	for i, text := range []string{
		"0", "00", "1001", "-1", "-0", "+1", "1.0", "1e2", "1_0", "0x1", " 1", "1 ", "１", "x", "null", "\xff", "4294967297",
		"18446744073709551617",
	} {
		path := []string{"/devices", "/devices/current", assignmentsPath, readingsPath}[i%4]
		f.get(t, path+"?limit="+url.QueryEscape(text)).requireInvalid(t, "limit")
	}
	conformance.Covers(t, "decision 31 f")
	for _, shape := range []string{"Long", "tall", "wide%20", "%00"} {
		f.get(t, "/readings.csv?shape="+shape).requireInvalid(t, "shape")
	}
	conformance.Covers(t, "decision 31 e")
	many := strings.Repeat(deviceID.String()+",", 1000) + deviceID.String()
	f.get(t, "/readings.csv?devices="+many).requireInvalid(t, "devices")
	f.get(t, "/readings.csv?devices="+many[:len(many)-37]).requireOK(t)
}

// Ids are accepted in any letter case and printed in lower case (decision 7).
func TestLetterCaseOfIDs(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 7 a", "decision 7 b", "spec 4, device, response")
	f := setup(t)
	f.addAssignment(t, deviceID, testID(0xa5, 1), start.Add(-day), nil)
	f.addReading(t, deviceID, start.Add(-roomsensor.BucketLength), 1)
	spellings := func(id uuid.UUID) []string {
		s := id.String()
		return []string{s, strings.ToUpper(s), strings.ToUpper(s[:20]) + s[20:]}
	}
	for _, device := range spellings(deviceID) {
		for _, assignment := range spellings(testID(0xa5, 1)) {
			for _, path := range []string{
				"/devices/" + device, "/devices/" + device + "/assignments", "/devices/" + device + "/readings?assignment_id=" + assignment,
				"/readings.csv?devices=" + device + "&assignment_id=" + assignment, "/readings.csv?shape=wide&devices=" + device,
			} {
				got := f.get(t, path).requireOK(t)
				require.NotContains(t, string(got.body), "DE000000")
				require.NotContains(t, string(got.body), "A5000000")
			}
		}
		patched := f.do(t, http.MethodPatch, "/devices/"+device, `{"metadata":{}}`, asJSON)
		require.Contains(t, string(patched.body), `"device_id":"`+deviceID.String()+`"`)
	}
}

// An id in any other form is refused, a hardware_id too (decision 7 c).
func TestMalformedIDs(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 7 c", "spec 1, conventions, rule 4", "spec 2, device, hardware_id, not_an_id")
	f := setup(t)
	id := deviceID.String()
	for _, text := range []string{
		"dev:1", "1", "a/b", "null", id[1:], id + "0", strings.ReplaceAll(id, "-", ""), "{" + id + "}", "{" + id[1:35] + "}", "urn:uuid:" + id,
		`"` + id[2:] + `"`, " " + id, id + " ", id + "\n", "\t" + id[1:], "+" + id[1:], "g" + id[1:], strings.Replace(id, "-", "_", 1),
		strings.Replace(id, "-", "\u2010", 1), "de00000-00000-4000-8000-000000000001", strings.Repeat("x", 36), strings.Repeat("0", 36),
		"ｄe" + id[4:], "0x" + id[2:], id[:35] + "\x00", id[:35] + "\xff", "%",
	} {
		segment, value := url.PathEscape(text), url.QueryEscape(text)
		for path, param := range map[string]string{
			"/devices/" + segment:                       "device_id",
			"/devices/" + segment + "/readings":         "device_id",
			"/devices/" + segment + "/assignments":      "device_id",
			readingsPath + "?assignment_id=" + value:    "assignment_id",
			"/readings.csv?assignment_id=" + value:      "assignment_id",
			"/readings.csv?devices=" + value:            "devices",
			"/readings.csv?devices=" + id + "," + value: "devices",
		} {
			f.get(t, path).requireInvalid(t, param)
		}
		f.do(t, http.MethodPatch, "/devices/"+segment, `{}`).requireInvalid(t, "device_id")
	}
	for _, devices := range []string{",", id + ",", "," + id, id + ", " + id, id + ";"} {
		f.get(t, "/readings.csv?devices="+url.QueryEscape(devices)).requireInvalid(t, "devices")
	}
	f.get(t, "/devices/current/readings").requireInvalid(t, "device_id")
	f.patch(t, `{"hardware_id":"dev:2"}`).requireInvalid(t, "hardware_id")
	require.Equal(t, "dev:1", decode[item](t, f.get(t, devicePath))["hardware_id"])
}
