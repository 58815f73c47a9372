package docs_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"roomsensor/docs"
	"roomsensor/internal/roomsensor"
)

func load(t *testing.T, text []byte) *openapi3.T {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromData(text)
	require.NoError(t, err)
	return document
}

func TestDocumentsAreValid(t *testing.T) {
	t.Parallel()
	h := sharedHandler(t)
	for _, name := range []string{"openapi", "receiver"} {
		asYAML := load(t, get(h, http.MethodGet, "/docs/"+name+".yaml").Body.Bytes())
		asJSON := load(t, get(h, http.MethodGet, "/docs/"+name+".json").Body.Bytes())
		require.True(t, asYAML.IsOpenAPI31OrLater())
		for _, document := range []*openapi3.T{asYAML, asJSON} {
			require.NoError(t, document.Validate(context.Background(), openapi3.EnableExamplesValidation()), name)
		}
		fromYAML, err := json.Marshal(asYAML)
		require.NoError(t, err)
		fromJSON, err := json.Marshal(asJSON)
		require.NoError(t, err)
		require.JSONEq(t, string(fromYAML), string(fromJSON))
	}
	require.Equal(t, publicURL+"/v1", load(t, get(h, http.MethodGet, "/docs/openapi.json").Body.Bytes()).Servers[0].URL)
}

// Decision 35: the table of codes is the source of the documents and the pages.
func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	h := sharedHandler(t)
	api, receiver := load(t, docs.OpenAPI()), load(t, docs.Receiver())
	index := get(h, http.MethodGet, "/docs/errors").Body.String()
	for _, info := range roomsensor.Codes {
		document := api
		if strings.HasPrefix(string(info.Code), "ingest_") {
			document = receiver
		}
		require.Contains(t, document.Components.Schemas["ErrorCode"].Value.Enum, any(string(info.Code)))
		require.Contains(t, document.Components.Examples, string(info.Code))
		require.Contains(t, index, `<a href="errors/`+string(info.Code)+`">`)

		page := get(h, http.MethodGet, "/docs/errors/"+string(info.Code)).Body.String()
		require.Contains(t, page, strconv.Itoa(info.Status))
		for _, text := range []string{info.Cause, info.Fix, info.Retry} {
			require.Contains(t, page, escape(text))
		}
		requireValid(t, document.Components.Schemas["Error"], exampleOn(t, page), string(info.Code))
	}
}

// escape writes a text as html/template does.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;", "+", "&#43;").Replace(text)
}

func exampleOn(t *testing.T, page string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, `<pre class="wrapped"><code>`)
	require.True(t, ok)
	example, _, ok := strings.Cut(rest, "</code>")
	require.True(t, ok)
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#39;", "'", "&#34;", `"`, "&#43;", "+", "&amp;", "&").Replace(example)
}

// operations calls visit for each operation of a document, by method and path.
func operations(document *openapi3.T, visit func(name string, o *openapi3.Operation)) {
	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			visit(method+" "+path, operation)
		}
	}
}

// Spec 4, and decision 42: HEAD works wherever GET does.
func TestOperationsAreThoseOfTheSpecification(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	operations(load(t, docs.OpenAPI()), func(name string, _ *openapi3.Operation) { found[name] = true })
	expected := map[string]bool{"PATCH /devices/{device_id}": true}
	for _, path := range []string{
		"/team", "/devices", "/devices/current", "/devices/{device_id}",
		"/devices/{device_id}/assignments", "/devices/{device_id}/readings", "/readings.csv",
	} {
		expected["GET "+path], expected["HEAD "+path] = true, true
	}
	require.Equal(t, expected, found)
}

func TestHeadAnswersAsGet(t *testing.T) {
	t.Parallel()
	for path, item := range load(t, docs.OpenAPI()).Paths.Map() {
		require.Equal(t, parameterNames(item.Get), parameterNames(item.Head), path)
		gets, heads := item.Get.Responses.Map(), item.Head.Responses.Map()
		require.ElementsMatch(t, slices.Collect(maps.Keys(gets)), slices.Collect(maps.Keys(heads)), path)
		for status, response := range heads {
			require.Empty(t, response.Value.Content, "%s %s", path, status)
			require.ElementsMatch(t, slices.Collect(maps.Keys(gets[status].Value.Headers)),
				slices.Collect(maps.Keys(response.Value.Headers)), "%s %s", path, status)
		}
	}
}

func parameterNames(o *openapi3.Operation) []string {
	var names []string
	for _, p := range o.Parameters {
		names = append(names, p.Value.Name)
	}
	return names
}

// Spec 4; decisions 8, 25, 26, 33: the headers that come without exception.
func TestResponsesCarryTheirHeaders(t *testing.T) {
	t.Parallel()
	operations(load(t, docs.OpenAPI()), func(name string, o *openapi3.Operation) {
		for status, response := range o.Responses.Map() {
			headers := response.Value.Headers
			required := func(header string) bool { return headers[header] != nil && headers[header].Value.Required }
			where := name + " " + status
			require.True(t, required("X-Request-Id"), where)
			require.Equal(t, status != "401" && status < "500" || status == "501", required("RateLimit-Remaining"), where)
			require.Equal(t, status == "401", required("WWW-Authenticate"), where)
			require.Equal(t, status == "429" || status == "503", required("Retry-After"), where)
			csv := strings.HasSuffix(name, "/readings.csv")
			require.Equal(t, csv, required("Cache-Control"), where)
			require.Equal(t, csv, required("Referrer-Policy"), where)
		}
	})
}
