package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// message returns error.message.
func (r response) message(t *testing.T) string {
	t.Helper()
	var envelope errorBody
	require.NoError(t, json.Unmarshal(r.body, &envelope), string(r.body))
	return envelope.Error.Message
}

// The message about an unknown parameter lists those of the endpoint and names the one that was probably meant.
func TestUnknownParameterMessages(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for path, known := range parametersOf {
		message := f.get(t, path+"?nonsense=1").message(t)
		list := "This endpoint has no parameters."
		if len(known) > 0 {
			_, list, _ = strings.Cut(message, "This endpoint accepts ")
			require.ElementsMatch(t, known, strings.Split(strings.TrimSuffix(strings.ReplaceAll(list, "<key>", "a"), "."), ", "), path)
		}
		require.Equal(t, `Unknown parameter "nonsense". `+strings.TrimPrefix(message, `Unknown parameter "nonsense". `), message)
		require.True(t, strings.HasSuffix(message, list), message)
	}
	for query, want := range map[string]string{
		"form=1": `Did you mean "from"?`, "FROM=1": `Did you mean "from"?`, "since=1": `Did you mean "from"?`, "end=1": `Did you mean "to"?`,
		"page=2": `Did you mean "cursor"?`, "per_page=1": `Did you mean "limit"?`, "assignement_id=1": `Did you mean "assignment_id"?`,
		"key=1": "Send the key in the header Authorization; only the exports of the API take it in the URL.",
	} {
		require.Contains(t, f.get(t, readingsPath+"?"+query).message(t), want)
	}
	for query, want := range map[string]string{
		"metadata=1": "metadata.<key>", "Metadata.site=1": "metadata.<key>", "meta.site=1": "metadata.<key>", "tag=1": "metadata.<key>",
	} {
		require.Contains(t, f.get(t, "/devices?"+query).message(t), fmt.Sprintf("Did you mean %q?", want))
	}
	for query, want := range map[string]string{
		"device_id=x": "devices", "metric=lux": "metrics", "fields=lux": "metrics", "column=id": "columns", "includes=x": "include",
		"tag.site=x": "metadata.<key>", "form=wide": "from", "format=wide": "shape",
	} {
		require.Contains(t, f.get(t, "/readings.csv?"+query).message(t), fmt.Sprintf("Did you mean %q?", want))
	}
	require.Contains(t, f.get(t, "/devices?building=gym").message(t), `"building". Did you mean "metadata.building"?`)
	require.NotContains(t, f.get(t, readingsPath+"?metric=x").message(t), "Did you mean")
	require.NotContains(t, f.get(t, "/team?since=1").message(t), "Did you mean")
	require.NotContains(t, f.get(t, "/nights.csv?excel=true").message(t), "Did you mean")
	require.Contains(t, f.patch(t, `{"displayname":"x"}`).message(t), `unknown field "displayname". Did you mean "display_name"?`)

	long := f.get(t, "/team?"+url.QueryEscape(strings.Repeat("é\x1b", 999))+"=1").message(t)
	require.Less(t, len(long), 200, "a name is cut")
	require.NotContains(t, long, "\x1b")
}

// The message about an unknown path lists the paths and names the one that was probably meant.
func TestUnknownPathMessages(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for path, want := range map[string]string{
		"/v1/device/x": `Did you mean "/v1/devices/{device_id}"?`, "/v1/devices/x/reading": `Did you mean "/v1/devices/{device_id}/readings"?`,
		"/v1/devices/": `There must not be a slash at the end. Did you mean "/v1/devices"?`, "/v1/teams": `Did you mean "/v1/team"?`,
		"/v1/readings": `Did you mean "/v1/readings.csv"?`, "/v2/team": `Did you mean "/v1/team"?`,
		"/team": `The path does not begin with /v1. Did you mean "/v1/team"?`, "/devices/x/readings": "does not begin with /v1.",
		"/uploads": "the receiver, which has its own address", "/v1/nothing": "There is no such path. The API has the paths",
		"/v1/" + strings.Repeat("x", 9999): "There is no such path. The API has the paths",
	} {
		message := f.replica.do(t, http.MethodGet, path, "").message(t)
		require.Contains(t, message, want, path)
		for _, known := range f.everyPath() {
			require.Contains(t, message, known, path)
		}
		require.Less(t, len(message), 500)
	}
	require.Contains(t, f.replica.do(t, http.MethodGet, "/docs/none", "").message(t), "begins at /docs")
	require.Equal(t, "This path supports GET, HEAD and PATCH only.", f.do(t, http.MethodPost, devicePath, "").message(t))
	require.Contains(t, f.do(t, http.MethodOptions, "/team", "").message(t), "CORS_ORIGINS")
}

// everyPath returns the paths of all endpoints.
func (f *fixture) everyPath() (paths []string) {
	for path := range parametersOf {
		paths = append(paths, "/v1"+strings.ReplaceAll(path, deviceID.String(), "{device_id}"))
	}
	return paths
}

// A client that quotes its request id can be answered: its line in the log has what went wrong, and who asked.
func TestLogLineOfAnError(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r := f.serve(t, f.store, func(cfg *api.Config) {
		cfg.Site.Proxies = append(cfg.Site.Proxies, loopback)
	})
	line := func(got response) (fields map[string]any) {
		for text := range strings.Lines(r.log.String()) {
			fields = nil // The fields of a line must not stay in the next.
			require.NoError(t, json.Unmarshal([]byte(text), &fields))
			if fields["request_id"] == got.header.Get("X-Request-Id") {
				return fields
			}
		}
		require.Fail(t, "no line")
		return nil
	}
	from := []option{withKey(f.key), header("User-Agent", "acme/1 "+strings.Repeat("long ", 99)), header("X-Forwarded-For", "192.0.2.7")}
	got := line(r.do(t, http.MethodGet, "/v1"+devicePath+"?form=1", "", from...))
	require.Equal(t, "validation_failed", got["code"])
	require.Equal(t, "form", got["param"])
	require.Equal(t, `Unknown parameter "form". This endpoint has no parameters.`, got["error"])
	require.Equal(t, "192.0.2.7", got["client"])
	require.Regexp(t, `^acme/1 (long )+.*\.\.\.$`, got["user_agent"])
	require.Len(t, got["user_agent"], 203)
	require.Equal(t, keyID(f.key), got["key_id"])
	require.NotContains(t, got, "path")

	got = line(r.do(t, http.MethodGet, "/v1/device/7?key=x", ""))
	require.Equal(t, "unmatched", got["route"])
	require.Equal(t, "/v1/device/7", got["path"])
	require.Equal(t, "127.0.0.1", got["client"])
	require.Equal(t, "/v1/devices/"+unknownID, line(r.get(t, "/devices/"+unknownID, f.key))["path"])
	for _, field := range []string{"client", "user_agent", "path", "error"} {
		require.NotContains(t, line(r.get(t, "/team", f.key)), field, "a request that succeeds")
	}
}

// A 501 is the mistake of a client: no alert on 5xx and no search for errors finds it.
func TestNotImplementedIsAClientError(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 48 a", "decision 48 b")
	f := setup(t)
	registry := prometheus.NewRegistry()
	f.replica = f.serve(t, f.store, func(cfg *api.Config) { cfg.Metrics = registry })
	f.patch(t, `{"assignment":null}`).requireError(t, roomsensor.CodeNotImplemented, "assignment")
	require.Contains(t, f.log.String(), `"level":"info"`)
	require.NotContains(t, f.log.String(), `"level":"error"`)
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Regexp(t, `name:"status" +value:"4xx"`, fmt.Sprint(families))
	require.NotRegexp(t, `name:"status" +value:"5`, fmt.Sprint(families))
}

// A denied client learns how long it has to wait, also from the message alone.
func TestRateLimitMessage(t *testing.T) {
	t.Parallel()
	f := setup(t)
	got := f.get(t, "/team", withKey(f.limitedKey(t, roomsensor.ScopeRead)))
	require.Contains(t, got.message(t), "Wait "+got.header.Get("Retry-After")+" seconds")
}

// Without a configured address, doc_url has the host of the request (decision 51 b).
func TestAddressInErrors(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 51 b 2")
	f := setup(t)
	r := f.serve(t, f.store, func(cfg *api.Config) {
		cfg.Site = httpedge.Site{LocalURL: "http://127.0.0.1:8080"}
	})
	for host, want := range map[string]string{"one.example:81": "http://one.example:81", "rsk_a_b": "http://127.0.0.1:8080"} {
		got := r.do(t, http.MethodGet, "/v1/team", "", func(r *http.Request) { r.Host = host })
		require.Contains(t, string(got.body), `"doc_url":"`+want+`/docs/errors/api_key_missing"`)
		require.Equal(t, "no-store", got.header.Get("Cache-Control"))
	}
}
