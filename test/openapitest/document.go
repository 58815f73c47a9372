// Package openapitest compares the responses of a service with its OpenAPI document. Only tests use it.
package openapitest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	"roomsensor/docs"
)

// Document is an OpenAPI document of the service.
type Document struct {
	spec *openapi3.T
	base string // prefix of the paths of the document
}

// API returns the document of the API.
func API() *Document { return api() }

// Receiver returns the document of the receiver.
func Receiver() *Document { return receiver() }

var (
	api      = sync.OnceValue(func() *Document { return load(docs.OpenAPI(), "/v1") })
	receiver = sync.OnceValue(func() *Document { return load(docs.Receiver(), "") })
)

func load(text []byte, base string) *Document {
	spec, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		panic(err) // The document is embedded in the program and tested on its own.
	}
	for _, item := range spec.Paths.Map() {
		item.Head = item.Get // HEAD works wherever GET does (decision 42 a), and the document does not repeat it.
	}
	return &Document{spec, base}
}

// Operations returns the operations of the document in the form "GET /team", sorted, and HEAD for each GET.
func (d *Document) Operations() []string {
	var all []string
	for path, item := range d.spec.Paths.Map() {
		for method := range item.Operations() {
			all = append(all, method+" "+path)
		}
	}
	slices.Sort(all)
	return all
}

// Parameters returns the parameters of an operation that Operations returns.
func (d *Document) Parameters(operation string) []*openapi3.Parameter {
	var all []*openapi3.Parameter
	for _, p := range d.operation(operation).Parameters {
		all = append(all, p.Value)
	}
	return all
}

// Codes returns the error codes of the document.
func (d *Document) Codes() (codes []string) {
	for _, code := range d.spec.Components.Schemas["ErrorCode"].Value.Enum {
		codes = append(codes, fmt.Sprint(code))
	}
	return codes
}

func (d *Document) operation(name string) *openapi3.Operation {
	method, path, _ := strings.Cut(name, " ")
	return d.spec.Paths.Value(path).GetOperation(method)
}

// Match returns the path of the document that a URL matches, or "". A literal segment takes precedence over a
// parameter.
func (d *Document) Match(u *url.URL) string {
	path, ok := strings.CutPrefix(u.EscapedPath(), d.base)
	if !ok {
		return ""
	}
	best := ""
	for template := range d.spec.Paths.Map() {
		if matches(template, path) && (best == "" || strings.Count(template, "{") < strings.Count(best, "{")) {
			best = template
		}
	}
	return best
}

func matches(template, path string) bool {
	wanted, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(wanted) != len(got) {
		return false
	}
	for i := range wanted {
		segment, err := url.PathUnescape(got[i])
		if err != nil || (segment != wanted[i] && (segment == "" || !strings.HasPrefix(wanted[i], "{"))) {
			return false
		}
	}
	return true
}

// response returns what the document says about the response of a status: of the operation, or of an unknown path or
// method. Outside of {base_url} the document describes only 404 and 405; other responses are known, but nil.
func (d *Document) response(r *http.Request, status int) (response *openapi3.ResponseRef, known bool) {
	within := strings.HasPrefix(r.URL.EscapedPath(), d.base)
	template := d.Match(r.URL)
	switch {
	case r.Method == http.MethodOptions && status == http.StatusNoContent:
		return nil, true // The document does not describe preflight requests of browsers.
	case template == "" && (within || status == http.StatusNotFound || status == http.StatusMethodNotAllowed):
		return d.refusal(status, http.StatusNotFound, http.StatusMethodNotAllowed)
	case template == "":
		return nil, true
	}
	operation := d.spec.Paths.Value(template).Operations()[r.Method]
	if operation == nil {
		return d.refusal(status, http.StatusMethodNotAllowed)
	}
	response = operation.Responses.Status(status)
	return response, response != nil
}

func (d *Document) refusal(status int, allowed ...int) (response *openapi3.ResponseRef, known bool) {
	names := map[int]string{http.StatusNotFound: "NotFound", http.StatusMethodNotAllowed: "MethodNotAllowed"}
	if !slices.Contains(allowed, status) {
		return nil, false
	}
	return d.spec.Components.Responses[names[status]], true
}
