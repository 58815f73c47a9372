package api_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"

	"roomsensor/docs"
)

// contract is the OpenAPI document, which every response of these tests is
// held to.
var contract = sync.OnceValues(func() (*openapi3.T, error) {
	openapi3filter.RegisterBodyDecoder("text/csv", openapi3filter.FileBodyDecoder)
	return openapi3.NewLoader().LoadFromData(docs.OpenAPI())
})

// operation finds the operation that a request is of; nil where the document
// has none.
func operation(doc *openapi3.T, r *http.Request) *routers.Route {
	path, ok := strings.CutPrefix(r.URL.Path, "/v1")
	segments := strings.Split(path, "/")
	if !ok || strings.Contains(path, "//") || strings.HasSuffix(path, "/") {
		return nil
	}
	if len(segments) > 2 && path != "/devices/current" {
		segments[2] = "{device_id}"
	}
	template := strings.Join(segments, "/")
	method := strings.Replace(r.Method, http.MethodHead, http.MethodGet, 1)
	item := doc.Paths.Value(template)
	if item == nil || item.Operations()[method] == nil {
		return nil
	}
	return &routers.Route{Spec: doc, Path: template, PathItem: item, Method: method, Operation: item.GetOperation(method)}
}

// requireContract holds a response to what the document says of it.
func requireContract(t *testing.T, got response) {
	t.Helper()
	r := got.request
	doc, err := contract()
	require.NoError(t, err)
	route := operation(doc, r)
	if route == nil {
		return
	}
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, Route: route},
		Status:                 got.status,
		Header:                 got.header,
		Body:                   io.NopCloser(bytes.NewReader(got.body)),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true,
			ExcludeResponseBody:   r.Method == http.MethodHead || got.header.Get("Content-Encoding") != "",
		},
	})
	require.NoError(t, err, "%s %s %d", r.Method, r.URL.Path, got.status)
}
