package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// parametersOf are the parameters of every GET.
var parametersOf = map[string][]string{
	"/team":                         {},
	"/devices":                      {"cursor", "limit", "metadata.a"},
	"/devices/current":              {"cursor", "limit", "metadata.a"},
	"/devices/" + deviceID.String(): {},
	"/devices/" + deviceID.String() + "/assignments": {"cursor", "limit"},
	readingsPath:    {"from", "to", "last", "assignment_id", "cursor", "limit"},
	"/readings.csv": {"from", "to", "last", "assignment_id", "devices", "shape", "key"},
}

// validValues are parameters with values that they may have, if not together.
var validValues = map[string]string{
	"from": "2026-11-20T08:00:00Z", "to": "2026-11-20T09:00:00Z", "last": "1h", "assignment_id": number(0xa5, 1).String(),
	"cursor": "x", "limit": "1", "metadata.a": "b", "devices": deviceID.String(), "shape": "wide", "key": "x",
}

// requireEverywhere holds GET and HEAD of every endpoint, and PATCH, to an error for a query.
func (f *fixture) requireEverywhere(t *testing.T, query, param string, isFault func(known []string) bool) {
	t.Helper()
	f.forgetRequests(t)
	for path, known := range parametersOf {
		if isFault(known) {
			f.get(t, path+"?"+query).requireError(t, roomsensor.CodeValidationFailed, param)
			require.Equal(t, http.StatusBadRequest, f.do(t, http.MethodHead, path+"?"+query, "").status, path)
		}
	}
	patched := f.do(t, http.MethodPatch, "/devices/"+deviceID.String()+"?"+query, `{"metadata":{"a":"b"}}`,
		header("Content-Type", "application/json"))
	patched.requireError(t, roomsensor.CodeValidationFailed, param)
	require.Empty(t, f.device(t).Metadata, "nothing is written")
}

func everywhere([]string) bool { return true }

func TestParametersThatAnEndpointDoesNotHave(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 6.1")
	f := setup(t)
	for name, value := range validValues {
		f.requireEverywhere(t, name+"="+value, name, func(known []string) bool { return !slices.Contains(known, name) })
	}
	for _, name := range []string{
		"form", "device", "From", "LAST", "last ", " last", "last[]", "last\x00", "lаst", "metadata", "Metadata.a", "meta.a", "next_cursor", "q", "*",
	} {
		f.requireEverywhere(t, url.QueryEscape(name)+"=1", name, everywhere)
		f.requireEverywhere(t, url.QueryEscape(name), name, everywhere)
		for path, known := range parametersOf {
			if slices.Contains(known, "last") {
				f.get(t, path+"?last=1h&"+url.QueryEscape(name)+"=1").requireError(t, roomsensor.CodeValidationFailed, name)
			}
		}
	}
	require.Equal(t, http.StatusOK, f.replica.do(t, http.MethodGet, "/docs?form=1&form=2&a;b=%zz", "").status, "of the API alone")
}

func TestParametersSentTwice(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 6.2")
	f := setup(t)
	for path, known := range parametersOf {
		for _, name := range known {
			value := validValues[name]
			spelt := fmt.Sprintf("%%%X%s", name[0], name[1:])
			for _, query := range []string{
				name + "=" + value + "&" + name + "=" + value, name + "=" + value + "&" + name + "=", name + "&" + name,
				name + "=" + value + "&" + spelt + "=" + value, spelt + "=x&" + name + "=" + value, "&" + name + "=x&&" + name + "=y&",
			} {
				f.get(t, path+"?"+query).requireError(t, roomsensor.CodeValidationFailed, name)
			}
		}
	}
	f.requireEverywhere(t, "x=1&x=1", "x", everywhere)
	require.Equal(t, http.StatusOK, f.get(t, "/devices?metadata.a=1&metadata.A=1&metadata.a.=1").status, "these are three")
}

func TestQueriesThatDoNotDecode(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 6.3")
	f := setup(t)
	for _, query := range []string{
		"from=%zz", "%zz=1", "%zz", "from=%", "from=%4", "from=%4g", "limit=1&x=%", "x=%&limit=1", "a=1;b=2", "a;b", ";", "last=1h;", "x=1&x=1&%", "&%zz&", "=%",
	} {
		f.requireEverywhere(t, query, "", everywhere)
	}
}

func TestEmptyIsAValue(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 6.4", "decision 6.5")
	f := setup(t)
	codes := map[string]roomsensor.Code{
		"from": roomsensor.CodeTimeRangeInvalid, "to": roomsensor.CodeTimeRangeInvalid, "last": roomsensor.CodeTimeRangeInvalid,
		"cursor": roomsensor.CodeCursorInvalid, "limit": roomsensor.CodeValidationFailed, "shape": roomsensor.CodeValidationFailed,
		"assignment_id": roomsensor.CodeValidationFailed, "devices": roomsensor.CodeValidationFailed,
	}
	for path, known := range parametersOf {
		for _, name := range known {
			for _, query := range []string{name + "=", name, "&" + name + "&"} {
				got := f.get(t, path+"?"+query)
				if code, refused := codes[name]; refused {
					got.requireError(t, code, name)
				} else {
					require.Equal(t, http.StatusOK, got.status, "%s %s", path, query)
				}
			}
		}
	}
	f.exec(t, `UPDATE devices SET metadata = '{"a":""}'`)
	require.Len(t, decode[list[device]](t, f.get(t, "/devices?metadata.a=")).Data, 1, "the empty value is one")
	require.Empty(t, decode[list[device]](t, f.get(t, "/devices?metadata.b=")).Data)
	for _, name := range []string{"Idempotency-Key", "Content-Type"} {
		empty := func(r *http.Request) { r.Header[name] = []string{""} }
		f.patch(t, `{"metadata":{}}`, empty).requireError(t, roomsensor.CodeValidationFailed, name)
		blank := func(r *http.Request) { r.Header[name] = []string{" \t"} }
		f.patch(t, `{"metadata":{}}`, blank).requireError(t, roomsensor.CodeValidationFailed, name)
	}
	f.get(t, "/readings.csv?key=", withoutKey).requireError(t, roomsensor.CodeAPIKeyInvalid, "")
	f.get(t, "/readings.csv?key="+f.key, func(r *http.Request) { r.Header["Authorization"] = []string{""} }).
		requireError(t, roomsensor.CodeAPIKeyInvalid, "")
}
