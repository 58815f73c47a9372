package app_test

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/dbtest"
	"roomsensor/internal/openapitest"
	"roomsensor/internal/roomsensor"
)

// send sends a request without a key.
func send(t *testing.T, method, url string, headers ...string) (response *http.Response, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	for pair := range slices.Chunk(headers, 2) {
		request.Header.Set(pair[0], pair[1])
	}
	response, err = openapitest.Transport(&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(request)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response, string(text)
}

// example is what the OpenAPI document says of a code.
type example struct {
	Description string `json:"description"`
	Value       struct {
		Error struct {
			Type    string  `json:"type"`
			Code    string  `json:"code"`
			Message string  `json:"message"`
			Param   *string `json:"param"`
			DocURL  string  `json:"doc_url"`
		} `json:"error"`
	} `json:"value"`
}

// The doc_url of an error leads to a page, and so do those of all others; what
// the pages, the document and the service say is the same.
func TestEveryCodeHasAPage(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 35.1", "decision 35.2", "decision 34.2")
	r := startAPI(t, apiConfig(dbtest.New(t).URL))
	r.address("ops")
	api := r.address("api")
	r.awaitReady()
	_, body := send(t, http.MethodGet, api+"/v1/team")
	var refused example
	require.NoError(t, json.Unmarshal([]byte(body), &refused.Value))
	docs := strings.TrimSuffix(refused.Value.Error.DocURL, "/errors/api_key_missing")
	require.Equal(t, api+"/docs", docs)

	var document struct {
		Components struct {
			Examples map[string]example `json:"examples"`
		} `json:"components"`
	}
	_, text := send(t, http.MethodGet, docs+"/openapi.json")
	require.NoError(t, json.Unmarshal([]byte(text), &document))
	for _, info := range roomsensor.Codes {
		response, page := send(t, http.MethodGet, docs+"/errors/"+string(info.Code))
		require.Equal(t, http.StatusOK, response.StatusCode, info.Code)
		page = html.UnescapeString(page)
		for _, part := range []string{string(info.Code), http.StatusText(info.Status), info.Cause, info.Message, info.Fix, info.Retry} {
			require.Contains(t, page, part, info.Code)
		}
		shown, ok := document.Components.Examples[string(info.Code)]
		if strings.HasPrefix(string(info.Code), "ingest_") {
			continue // Of the receiver's document.
		}
		require.True(t, ok, info.Code)
		require.Equal(t, info.Cause, shown.Description)
		said := shown.Value.Error
		require.Equal(t, []string{"invalid_request_error", string(info.Code), info.Message, docs + "/errors/" + string(info.Code)},
			[]string{said.Type, said.Code, said.Message, said.DocURL})
		if info.Param == "" {
			require.Nil(t, said.Param, info.Code)
		} else {
			require.Equal(t, info.Param, *said.Param)
		}
	}
	require.Equal(t, document.Components.Examples["api_key_missing"].Value.Error, refused.Value.Error)
	require.NoError(t, r.end())
}

// HEAD has the headers of GET, and JSON a weak ETag, on the docs too.
func TestDocsAnswerHeadAndConditions(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 42.1", "decision 42.2", "decision 42.3")
	r := startAPI(t, apiConfig(dbtest.New(t).URL))
	r.address("ops")
	api := r.address("api")
	r.awaitReady()
	for _, path := range []string{
		"/", "/docs", "/docs/openapi.json", "/docs/openapi.yaml", "/docs/receiver.json", "/docs/errors", "/docs/errors/overloaded",
		"/docs/guides/csv", "/docs/none", "/none", "/v1/team",
	} {
		for _, coding := range []string{"identity", "gzip"} {
			get, body := send(t, http.MethodGet, api+path, "Accept-Encoding", coding)
			head, none := send(t, http.MethodHead, api+path, "Accept-Encoding", coding)
			require.Equal(t, get.StatusCode, head.StatusCode, path)
			require.Empty(t, none)
			for _, h := range []http.Header{get.Header, head.Header} {
				h.Del("Date")
				h.Del("X-Request-Id")
				h.Del("Content-Length") // HEAD may leave it out.
			}
			require.Equal(t, get.Header, head.Header, path)
			if !strings.HasSuffix(path, ".json") {
				continue
			}
			tag := get.Header.Get("ETag")
			require.Regexp(t, `^W/"[^"]+"$`, tag)
			require.NotEmpty(t, body)
			for _, value := range []string{tag, strings.TrimPrefix(tag, "W/"), "*", `"x", ` + tag} {
				unchanged, nothing := send(t, http.MethodGet, api+path, "If-None-Match", value)
				require.Equal(t, http.StatusNotModified, unchanged.StatusCode, value)
				require.Empty(t, nothing)
			}
		}
	}
	require.NoError(t, r.end())
}
