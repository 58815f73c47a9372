package api_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/openapitest"
	"roomsensor/test/secretscan"
)

// testingT is a *testing.T, a *testing.F or a *rapid.T, which prints its seed when it fails.
type testingT interface {
	require.TestingT
	Helper()
	Context() context.Context
}

// response is a response that was read completely.
type response struct {
	request *http.Request
	status  int
	header  http.Header
	body    []byte
	err     error // no response, an incomplete one, or one that contradicts the OpenAPI document
}

// option changes a request before it is sent.
type option func(*http.Request)

func header(name, value string) option {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

// setHeader replaces all values of a header.
func setHeader(name string, values ...string) option {
	return func(r *http.Request) { r.Header[name] = values }
}

func withKey(key string) option {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key) }
}

func idempotencyKey(key string) option { return header("Idempotency-Key", key) }

var (
	withoutKey = option(func(r *http.Request) { r.Header.Del("Authorization") })
	asJSON     = header("Content-Type", "application/json")
)

// do sends a request to a path below {base_url}, with the fixture's read_write key unless an option changes it.
func (f *fixture) do(t testingT, method, path, body string, options ...option) response {
	t.Helper()
	return f.replica.do(t, method, "/v1"+path, body, append([]option{withKey(f.key)}, options...)...)
}

func (f *fixture) get(t testingT, path string, options ...option) response {
	t.Helper()
	return f.do(t, http.MethodGet, path, "", options...)
}

func (f *fixture) head(t testingT, path string, options ...option) response {
	t.Helper()
	return f.do(t, http.MethodHead, path, "", options...)
}

// patch sends a PATCH of the fixture's device.
func (f *fixture) patch(t testingT, body string, options ...option) response {
	t.Helper()
	return f.do(t, http.MethodPatch, devicePath, body, append([]option{asJSON}, options...)...)
}

func (r *replica) do(t testingT, method, path, body string, options ...option) response {
	t.Helper()
	got := r.try(t.Context(), method, path, body, options...)
	require.NoError(t, got.err)
	return got
}

// get sends a GET with a key to a path below {base_url}.
func (r *replica) get(t testingT, path, key string) response {
	t.Helper()
	return r.do(t, http.MethodGet, "/v1"+path, "", withKey(key))
}

// try is do for goroutines and for requests without a response.
func (r *replica) try(ctx context.Context, method, path, body string, options ...option) response {
	request, err := http.NewRequestWithContext(ctx, method, r.server.URL+path, strings.NewReader(body))
	if err != nil {
		return response{err: err}
	}
	for _, option := range options {
		option(request)
	}
	got, err := r.server.Client().Do(request)
	if err != nil {
		return response{err: err}
	}
	content, err := io.ReadAll(got.Body)
	read := response{request, got.StatusCode, got.Header, content, errors.Join(err, got.Body.Close())}
	if read.err == nil {
		read.err = read.check()
	}
	return read
}

// check compares a response with the OpenAPI document and looks for secrets of keys. Every response of these tests
// passes it.
func (r response) check() error {
	if found := secretscan.Keys(r.text()); len(found) > 0 {
		return fmt.Errorf("%d to %s shows a secret", r.status, r.request.URL.Path)
	}
	return openapitest.API().Check(&openapitest.Answer{Request: r.request, Status: r.status, Header: r.header, Body: r.body})
}

// text returns headers and body.
func (r response) text() []byte {
	var text bytes.Buffer
	_ = r.header.Write(&text) // Writing to memory does not fail.
	_, _ = text.Write(r.body)
	return text.Bytes()
}

// errorBody is the envelope of part 7 of the specification.
type errorBody struct {
	Error struct {
		Type      string          `json:"type"`
		Code      roomsensor.Code `json:"code"`
		Message   string          `json:"message"`
		Param     *string         `json:"param"`
		DocURL    string          `json:"doc_url"`
		RequestID string          `json:"request_id"`
	} `json:"error"`
}

// code returns the error code; empty for a response without an error body.
func (r response) code() roomsensor.Code {
	var envelope errorBody
	_ = json.Unmarshal(r.body, &envelope) // Responses to HEAD have none.
	return envelope.Error.Code
}

// requireError requires an error code with its status and its param; an empty param is null.
func (r response) requireError(t testingT, code roomsensor.Code, param string) {
	t.Helper()
	var envelope errorBody
	require.NoError(t, json.Unmarshal(r.body, &envelope), "%d %s", r.status, r.body)
	got := envelope.Error
	require.Equal(t, code, got.Code, string(r.body))
	require.Equal(t, "invalid_request_error", got.Type)
	require.Regexp(t, `[.?]$`, got.Message)
	require.Equal(t, docsURL+"/errors/"+string(code), got.DocURL)
	require.Equal(t, r.header.Get("X-Request-Id"), got.RequestID)
	require.Contains(t, string(r.body), `"param":`)
	if param == "" {
		require.Nil(t, got.Param)
	} else {
		require.NotNil(t, got.Param, string(r.body))
		require.Equal(t, param, *got.Param)
	}
	if r.status != http.StatusUnprocessableEntity {
		require.Equal(t, statuses[code], r.status)
	}
}

// requireInvalid requires 400 validation_failed.
func (r response) requireInvalid(t testingT, param string) {
	t.Helper()
	r.requireError(t, roomsensor.CodeValidationFailed, param)
}

// requireOK requires status 200.
func (r response) requireOK(t testingT) response {
	t.Helper()
	require.Equal(t, http.StatusOK, r.status, "%s: %s", r.request.URL.Path, r.body)
	return r
}

// list is the envelope of every list.
type list[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// item is an item of any list.
type item = map[string]any

func decode[T any](t testingT, r response) T {
	t.Helper()
	r.requireOK(t)
	var body T
	require.NoError(t, json.Unmarshal(r.body, &body), string(r.body))
	return body
}

// items returns the items of a page.
func (f *fixture) items(t testingT, path string) []item {
	t.Helper()
	return decode[list[item]](t, f.get(t, path)).Data
}

// allPages follows the cursors to the last page.
func allPages[T any](t *testing.T, f *fixture, path, first string) (pages []list[T]) {
	t.Helper()
	for query := first; ; {
		page := decode[list[T]](t, f.get(t, path+"?"+query))
		pages = append(pages, page)
		if page.NextCursor == nil {
			return pages
		}
		query = "cursor=" + url.QueryEscape(*page.NextCursor)
	}
}

// allValues returns the values of a field over all pages.
func allValues(t *testing.T, f *fixture, path, first, field string) (values []string) {
	t.Helper()
	for _, page := range allPages[item](t, f, path, first) {
		for _, i := range page.Data {
			values = append(values, i[field].(string))
		}
	}
	return values
}

// firstCursor returns the cursor of a first page, encoded for a query.
func (f *fixture) firstCursor(t testingT, path string) string {
	t.Helper()
	page := decode[list[item]](t, f.get(t, path))
	require.NotNil(t, page.NextCursor, path)
	return url.QueryEscape(*page.NextCursor)
}

// reading is an item of GET /devices/{device_id}/readings.
type reading struct {
	BucketAt string   `json:"bucket_at"`
	CO2      *float64 `json:"co2_ppm"`
}

// co2s returns the co2_ppm of a page; tests number their readings with it.
func co2s(page list[reading]) []int {
	numbers := make([]int, len(page.Data))
	for i, r := range page.Data {
		numbers[i] = int(*r.CO2)
	}
	return numbers
}

// selected returns the co2_ppm that a query selects, newest first. The export must select the same readings.
func (f *fixture) selected(t *testing.T, query string) []int {
	t.Helper()
	numbers := co2s(decode[list[reading]](t, f.get(t, readingsPath+"?"+query)))
	rows := f.get(t, "/readings.csv?"+query).records(t)
	require.Len(t, rows, len(numbers)+1, query)
	for i, row := range rows[1:] {
		require.Equal(t, strconv.Itoa(numbers[len(numbers)-1-i]), row[3], query)
	}
	return numbers
}

// records reads a CSV body; the first record is the header row.
func (r response) records(t *testing.T) [][]string {
	t.Helper()
	r.requireOK(t)
	records, err := csv.NewReader(bytes.NewReader(r.body)).ReadAll()
	require.NoError(t, err)
	return records
}

// readEndpoints returns the paths of all GET endpoints, on a window that contains all readings.
func readEndpoints() []string {
	return []string{
		"/team", "/devices", "/devices/current", devicePath, assignmentsPath, readingsPath + "?last=90d",
		"/assignments?last=90d", "/nights?" + allNights, "/nights.csv?" + allNights, "/coverage?last=90d", gapsPath + "?last=90d", "/readings.csv?last=90d", "/readings.csv?last=90d&shape=wide",
		"/readings.parquet?last=90d",
		aggregatesPath + "?interval=1d&last=90d", "/aggregates.csv?interval=1d&last=90d",
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

// randomID matches the request ids of a body, which differ from run to run.
var randomID = regexp.MustCompile(`req_[a-z0-9]{26}`)

// waitTime matches the wait of a key at its limit, which depends on the time of day.
var waitTime = regexp.MustCompile(`Wait \d+ seconds`)

// requireGolden compares a body with a file of testdata.
func requireGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	got = waitTime.ReplaceAll(randomID.ReplaceAll(got, []byte("req_x")), []byte("Wait n seconds"))
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}
