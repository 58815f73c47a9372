// Package openapitest holds the answers of a service to its OpenAPI document,
// and makes requests from the document: for tests only.
package openapitest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"

	"roomsensor/docs"
)

// Document is one of the service's OpenAPI documents.
type Document struct {
	spec *openapi3.T
	base string // what comes before the paths of the document
}

// API is the document of the API.
func API() *Document { return api() }

// Receiver is the document of the receiver.
func Receiver() *Document { return receiver() }

var (
	api      = sync.OnceValue(func() *Document { return load(docs.OpenAPI(), "/v1") })
	receiver = sync.OnceValue(func() *Document { return load(docs.Receiver(), "") })
)

// register is for the one content type that the validator does not know.
var register = sync.OnceFunc(func() {
	openapi3filter.RegisterBodyDecoder("text/csv", openapi3filter.FileBodyDecoder)
})

func load(text []byte, base string) *Document {
	register()
	spec, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		panic(err) // It is a part of the program, and has tests of its own.
	}
	return &Document{spec, base}
}

// Operations lists what the document describes, as "GET /team".
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

// Parameters are those of an operation that Operations lists.
func (d *Document) Parameters(operation string) []*openapi3.Parameter {
	var all []*openapi3.Parameter
	for _, p := range d.operation(operation).Parameters {
		all = append(all, p.Value)
	}
	return all
}

// Codes are the error codes that the document names.
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

// Match is the path of the document that a URL is of; empty where it is none.
// A segment that is written out wins over a parameter.
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

// response is what the document says of an answer: that of the operation, or,
// where there is none, of an unknown path or method. Outside of the document's
// paths only errors are its matter; nil is none of it.
func (d *Document) response(r *http.Request, status int) (response *openapi3.ResponseRef, known bool) {
	within := strings.HasPrefix(r.URL.EscapedPath(), d.base)
	template := d.Match(r.URL)
	switch {
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
