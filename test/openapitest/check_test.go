package openapitest_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/compress"
	"roomsensor/test/openapitest"
)

const (
	id      = "req_ujzdegxdncf32epf3dhodzdoci"
	page    = `{"data":[],"next_cursor":null}`
	refusal = `{"error":{"type":"invalid_request_error","code":"validation_failed","message":"limit must be right.",` +
		`"param":"limit","doc_url":"http://h/docs/errors/validation_failed","request_id":"` + id + `"}}`
	unknown = `{"error":{"type":"invalid_request_error","code":"not_found","message":"There is nothing here.",` +
		`"param":null,"doc_url":"http://h/docs/errors/not_found","request_id":"` + id + `"}}`
	lines = "bucket_at\n2026-11-20T09:50:00Z\n"
)

var headers = map[string]string{
	"X-Request-Id": id, "Content-Type": "application/json; charset=utf-8", "RateLimit-Limit": "600",
	"RateLimit-Remaining": "1", "RateLimit-Reset": "2", "ETag": `W/"x"`, "Vary": "Accept-Encoding",
}

// refusalHeaders are headers without those of a success alone.
var refusalHeaders = with(with(headers, "ETag", ""), "Vary", "")

var csvHeaders = with(with(with(with(with(with(headers, "ETag", ""), "Content-Type", "text/csv; charset=utf-8"), "X-Row-Count", "1"),
	"Cache-Control", "no-store"), "Referrer-Policy", "no-referrer"),
	"Content-Disposition", `attachment; filename="readings_20261120T000000Z_20261120T100000Z.csv"`)

func with(h map[string]string, name, value string) map[string]string {
	changed := maps.Clone(h)
	changed[name] = value
	return changed
}

func answer(t *testing.T, method, path string, status int, h map[string]string, body string) *openapitest.Answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, nil)
	require.NoError(t, err)
	a := &openapitest.Answer{Request: request, Status: status, Header: http.Header{}, Body: []byte(body)}
	for name, value := range h {
		if value != "" {
			a.Header.Set(name, value)
		}
	}
	return a
}

func TestCheck(t *testing.T) {
	t.Parallel()
	packed, err := compress.Append(nil, []byte(page), compress.Gzip)
	require.NoError(t, err)
	badlyPacked, err := compress.Append(nil, []byte(`{"data":[]}`), compress.Zstd)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		method, path string
		status       int
		headers      map[string]string
		body         string
		wrong        string // in the error; empty where the answer is right
	}{
		"a page":                         {"GET", "/v1/devices", 200, headers, page, ""},
		"without an id":                  {"GET", "/v1/devices", 200, with(headers, "X-Request-Id", ""), page, "X-Request-Id"},
		"with an id of another form":     {"GET", "/v1/devices", 200, with(headers, "X-Request-Id", "mine"), page, "X-Request-Id"},
		"without a header":               {"GET", "/v1/devices", 200, with(headers, "ETag", ""), page, "ETag"},
		"with a header not known":        {"GET", "/v1/devices", 200, with(headers, "Server", "x"), page, "Server"},
		"with a bad header":              {"GET", "/v1/devices", 200, with(headers, "RateLimit-Limit", "601"), page, "RateLimit-Limit"},
		"of another content type":        {"GET", "/v1/devices", 200, with(headers, "Content-Type", "text/html"), page, "Content-Type"},
		"of another schema":              {"GET", "/v1/devices", 200, headers, `{"data":[]}`, "next_cursor"},
		"with a field too many":          {"GET", "/v1/devices", 200, headers, `{"data":[],"next_cursor":null,"x":1}`, `"x" is unsupported`},
		"without a body":                 {"GET", "/v1/devices", 200, headers, "", "0 bytes"},
		"packed":                         {"GET", "/v1/devices", 200, with(headers, "Content-Encoding", "gzip"), string(packed), ""},
		"packed and of another schema":   {"GET", "/v1/devices", 200, with(headers, "Content-Encoding", "zstd"), string(badlyPacked), "next_cursor"},
		"packed and cut":                 {"GET", "/v1/devices", 200, with(headers, "Content-Encoding", "gzip"), string(packed[:9]), "gzip"},
		"packed in no known way":         {"GET", "/v1/devices", 200, with(headers, "Content-Encoding", "br"), page, "br"},
		"a status that is not known":     {"GET", "/v1/devices", 404, refusalHeaders, unknown, "does not have this status"},
		"HEAD":                           {"HEAD", "/v1/devices", 200, headers, "", ""},
		"HEAD without a header":          {"HEAD", "/v1/devices", 200, with(headers, "Vary", ""), "", "Vary"},
		"HEAD with a body":               {"HEAD", "/v1/devices", 200, headers, page, "bytes"},
		"HEAD of a status not known":     {"HEAD", "/v1/devices", 404, refusalHeaders, "", "does not have this status"},
		"unchanged":                      {"GET", "/v1/devices", 304, headers, "", ""},
		"unchanged without a header":     {"GET", "/v1/devices", 304, with(headers, "ETag", ""), "", "ETag"},
		"a refusal":                      {"GET", "/v1/devices", 400, refusalHeaders, refusal, ""},
		"a code of another status":       {"GET", "/v1/nothing", 404, refusalHeaders, strings.ReplaceAll(unknown, "not_found", "internal_error"), "internal_error"},
		"a code of another operation":    {"GET", "/v1/devices", 400, refusalHeaders, strings.ReplaceAll(refusal, "validation_failed", "time_range_invalid"), "time_range_invalid"},
		"a param of another operation":   {"GET", "/v1/devices/x", 404, refusalHeaders, deviceNotFound("devices"), "devices"},
		"the param of the operation":     {"GET", "/v1/devices/x", 404, refusalHeaders, deviceNotFound("device_id"), ""},
		"a mean of no values":            {"GET", "/v1/devices/x/aggregates", 200, headers, aggregates("21.5", 0), "min is 21.5"},
		"no mean of values":              {"GET", "/v1/devices/x/aggregates", 200, headers, aggregates("null", 3), "min is <nil>"},
		"no mean of no values":           {"GET", "/v1/devices/x/aggregates", 200, headers, aggregates("null", 0), ""},
		"another request id":             {"GET", "/v1/devices", 400, refusalHeaders, strings.ReplaceAll(refusal, id, strings.ToUpper(id)), "request_id"},
		"another page":                   {"GET", "/v1/devices", 400, refusalHeaders, strings.ReplaceAll(refusal, "errors/", "pages/"), "doc_url"},
		"a message of the inside":        {"GET", "/v1/devices", 400, refusalHeaders, strings.ReplaceAll(refusal, "limit must", "strconv.Atoi: limit must"), "internals"},
		"a message that repeats":         {"GET", "/v1/devices?strconv=1", 400, refusalHeaders, strings.ReplaceAll(refusal, "limit must", "strconv must"), ""},
		"an unknown path":                {"GET", "/v1/nothing", 404, refusalHeaders, unknown, ""},
		"an unknown path that answers":   {"GET", "/v1/nothing", 200, headers, page, "does not have this status"},
		"a path that is nearly there":    {"GET", "/v1/devices/", 200, headers, page, "does not have this status"},
		"an unknown method":              {"PUT", "/v1/devices", 200, headers, page, "does not have this status"},
		"a page of the docs":             {"GET", "/docs/errors", 200, headers, "<html>", ""},
		"no page of the docs":            {"GET", "/docs/nothing", 404, refusalHeaders, unknown, ""},
		"no page of the docs, as text":   {"GET", "/docs/nothing", 404, with(headers, "Content-Type", "text/plain"), "not found", "Content-Type"},
		"CSV":                            {"GET", "/v1/readings.csv", 200, csvHeaders, lines, ""},
		"CSV of another length":          {"GET", "/v1/readings.csv", 200, with(csvHeaders, "X-Row-Count", "2"), lines, "X-Row-Count"},
		"CSV with a field too many":      {"GET", "/v1/readings.csv", 200, csvHeaders, lines[:len(lines)-1] + ",1\n", "CSV"},
		"CSV that may be kept":           {"GET", "/v1/readings.csv", 200, with(csvHeaders, "Cache-Control", "private"), lines, "Cache-Control"},
		"CSV of which the name is wrong": {"GET", "/v1/readings.csv", 200, with(csvHeaders, "Content-Disposition", "attachment"), lines, "Content-Disposition"},
	} {
		err := openapitest.API().Check(answer(t, tc.method, tc.path, tc.status, tc.headers, tc.body))
		if tc.wrong == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, tc.wrong, name)
		}
	}
}

// deviceNotFound returns the body of a 404 about a parameter.
func deviceNotFound(param string) string {
	return strings.NewReplacer("not_found", "device_not_found", `"param":null`, `"param":"`+param+`"`).Replace(unknown)
}

// aggregates returns a page of one aggregate, whose temperatures have one minimum, maximum and mean.
func aggregates(value string, count int) string {
	return fmt.Sprintf(`{"data":[{"bucket_at":"2026-11-20T09:00:00Z","bucket_end":"2026-11-20T10:00:00Z","expected":12,"present":3,`+
		`"temp_c":{"min":%[1]s,"max":%[1]s,"mean":%[1]s,"count":%[2]d}}],"next_cursor":null}`, value, count)
}

func TestTransport(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		_, _ = io.WriteString(w, page)
	})
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	client := &http.Client{Transport: openapitest.Transport(&http.Transport{})}
	t.Cleanup(client.CloseIdleConnections)
	for target, wrong := range map[string]string{
		"/v1/devices": "",
		"/v1/team":    "is unsupported",
		"/v1/nothing": "does not have this status",
		"/uploads":    "does not have this status",
		"/metrics":    "",
	} {
		response, err := client.Get(server.URL + target)
		if wrong != "" {
			require.ErrorContains(t, err, wrong)
			continue
		}
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, errors.Join(err, response.Body.Close()))
		require.JSONEq(t, page, string(body))
	}
}
