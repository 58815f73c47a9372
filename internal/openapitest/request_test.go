package openapitest_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/docs"
	"roomsensor/internal/openapitest"
)

// The library that the documents are read with has an opinion of its own on
// requests: it takes those without a fault, and refuses what breaks a schema.
func TestRequestsAreWhatTheySay(t *testing.T) {
	t.Parallel()
	for text, document := range map[*[]byte]*openapitest.Document{
		new(docs.OpenAPI()): openapitest.API(), new(docs.Receiver()): openapitest.Receiver(),
	} {
		spec, err := openapi3.NewLoader().LoadFromData(*text)
		require.NoError(t, err)
		client := openapitest.Client{
			Document: document, Keys: []string{"good"}, BadKeys: []string{"bad"}, MaxBody: 64 << 10,
			Samples: openapitest.Samples{"name in metadata": {"metadata.site", "site"}, "device_id": {"dev:1"}},
		}
		for _, operation := range document.Operations() {
			t.Run(operation, func(t *testing.T) {
				t.Parallel()
				requests := client.Requests(operation)
				rapid.Check(t, func(r *rapid.T) {
					request := requests.Draw(r, "request")
					switch err := validate(r, spec, document, operation, request); {
					case len(request.Faults) == 0:
						require.NoError(r, err)
					case slices.Equal(request.Faults, []openapitest.Fault{openapitest.BadFields}):
						require.Error(r, err)
					}
				})
			})
		}
	}
}

func validate(t *rapid.T, spec *openapi3.T, d *openapitest.Document, operation string, r *openapitest.Request) error {
	made, err := r.HTTP("http://127.0.0.1:8080")
	require.NoError(t, err)
	method, path, _ := strings.Cut(operation, " ")
	if len(r.Faults) == 0 {
		require.Equal(t, path, d.Match(made.URL))
		require.Equal(t, method, made.Method)
	}
	parameters := map[string]string{}
	got := strings.Split(strings.TrimPrefix(made.URL.EscapedPath(), "/v1"), "/")
	for i, name := range strings.Split(path, "/") {
		if strings.HasPrefix(name, "{") && i < len(got) {
			parameters[strings.Trim(name, "{}")], err = url.PathUnescape(got[i])
			require.NoError(t, err)
		}
	}
	if made.Header.Get("Content-Type") == "application/x-ndjson" {
		made.Header.Set("Content-Type", "application/json") // Which one line is, too.
		if strings.Count(string(r.Body), "\n") > 1 {
			return nil
		}
	}
	described := *spec.Paths.Value(path).GetOperation(method)
	// Of a free-form object the library takes every parameter for a part.
	described.Parameters = slices.DeleteFunc(slices.Clone(described.Parameters),
		func(p *openapi3.ParameterRef) bool { return p.Value.Name == "metadata" })
	return openapi3filter.ValidateRequest(t.Context(), &openapi3filter.RequestValidationInput{
		Request: made, PathParams: parameters,
		Route:   &routers.Route{Spec: spec, Path: path, PathItem: &openapi3.PathItem{}, Method: method, Operation: &described},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true},
	})
}
