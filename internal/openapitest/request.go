package openapitest

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"
)

// Client says who makes requests, and with what.
type Client struct {
	Document *Document
	Keys     []string // that the service takes
	BadKeys  []string // and that it refuses
	Samples  Samples
	MaxBody  int // a larger body is refused; 0 leaves sizes alone
}

// Fault is a way in which the document refuses a request.
type Fault string

// The faults that requests are made with.
const (
	BadParameter   Fault = "a parameter breaks its schema"
	BadQuery       Fault = "the query has what no operation takes"
	BadHeader      Fault = "a header breaks a rule"
	BadCredentials Fault = "no valid key"
	BadRoute       Fault = "a path or method that is not there"
	BadFields      Fault = "the body breaks its schema"
	BadBody        Fault = "the body cannot be read"
)

// Request is one that a client could make.
type Request struct {
	Method string
	Path   string   // escaped
	Query  []string // name=value, escaped
	Header http.Header
	Body   []byte
	Faults []Fault  // none where the document takes it
	Sent   []string // the names of its parameters
}

// HTTP is the request as Go's client sends it.
func (r *Request) HTTP(baseURL string) (*http.Request, error) {
	url := baseURL + r.Path
	if len(r.Query) > 0 {
		url += "?" + strings.Join(r.Query, "&")
	}
	request, err := http.NewRequest(r.Method, url, bytes.NewReader(r.Body)) //nolint:noctx // The sender gives one.
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	request.Header = r.Header.Clone()
	return request, nil
}

// String is what a failed test shows.
func (r *Request) String() string {
	query := strings.Join(r.Query, "&")
	return fmt.Sprintf("%s %s?%s %q body %.2000q %q", r.Method, r.Path, query, r.Header, r.Body, r.Faults)
}

// Requests makes requests of an operation that Document.Operations lists: as
// many valid ones as broken ones.
func (c *Client) Requests(operation string) *rapid.Generator[*Request] {
	return rapid.Custom(func(t *rapid.T) *Request {
		b := c.begin(t, operation)
		b.valid()
		b.decorate()
		for range rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2}).Draw(t, "faults") {
			b.spoilSomething()
		}
		return b.finish()
	})
}

// pair is a parameter of a query before it is escaped.
type pair struct{ name, value string }

// builder makes one request.
type builder struct {
	*Client
	*Request
	t         *rapid.T
	operation *openapi3.Operation
	segments  map[string]string // by parameter of the path
	pairs     []pair
	raw       []string // parts of the query as they are
}

func (c *Client) begin(t *rapid.T, name string) *builder {
	method, path, _ := strings.Cut(name, " ")
	return &builder{
		Client: c, t: t, operation: c.Document.operation(name), segments: map[string]string{},
		Request: &Request{Method: method, Path: c.Document.base + path, Header: http.Header{}},
	}
}

func (b *builder) often() bool { return rapid.Bool().Draw(b.t, "often") }

func (b *builder) seldom() bool { return rapid.IntRange(0, 9).Draw(b.t, "seldom") == 0 }

// valid makes what the document takes.
func (b *builder) valid() {
	for _, p := range b.operation.Parameters {
		if p.Value.Required || rapid.IntRange(0, 2).Draw(b.t, "with "+p.Value.Name) == 0 {
			b.set(p.Value, b.Samples.draw(b.t, p.Value.Name, p.Value.Schema.Value))
		}
	}
	b.authorize()
	if b.operation.RequestBody != nil {
		b.drawBody()
	}
}

// set gives a parameter a value, in the form that the document says.
func (b *builder) set(p *openapi3.Parameter, value any) {
	switch p.In {
	case openapi3.ParameterInPath:
		b.segments[p.Name] = text(value)
	case openapi3.ParameterInHeader:
		if headerValue(text(value)) {
			b.Header.Set(p.Name, text(value))
		}
	default:
		b.pairs = slices.DeleteFunc(b.pairs, func(sent pair) bool { return sent.name == p.Name })
		if object, ok := value.(map[string]any); ok {
			for _, name := range slices.Sorted(maps.Keys(object)) {
				b.pairs = append(b.pairs, pair{name, text(object[name])})
			}
			return
		}
		b.pairs = append(b.pairs, pair{p.Name, text(value)})
	}
}

// text is a value in a path, query or header.
func text(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case []any:
		items := make([]string, len(value))
		for i := range value {
			items[i] = text(value[i])
		}
		return strings.Join(items, ",")
	case float64:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0")
	default:
		return fmt.Sprint(value)
	}
}

// headerValue reports whether a text is one that HTTP carries as it is.
func headerValue(text string) bool {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	return !strings.ContainsFunc(text, control) && strings.TrimSpace(text) == text
}

// authorize sends a key in the header or, where the document takes it, in the URL.
func (b *builder) authorize() {
	key := rapid.SampledFrom(b.Keys).Draw(b.t, "key")
	if security := b.operation.Security; security != nil && len(*security) > 1 && b.often() {
		b.pairs = append(b.pairs, pair{"key", key})
		return
	}
	scheme := rapid.SampledFrom([]string{"Bearer ", "bearer ", "BEARER  "}).Draw(b.t, "scheme")
	b.Header.Set("Authorization", scheme+key)
}

// finish escapes what is still to be escaped.
func (b *builder) finish() *Request {
	for _, name := range slices.Sorted(maps.Keys(b.segments)) {
		b.Path = strings.ReplaceAll(b.Path, "{"+name+"}", b.escaped(b.segments[name]))
	}
	for _, sent := range b.pairs {
		b.Sent = append(b.Sent, sent.name)
		b.raw = append(b.raw, b.escaped(sent.name)+"="+b.escaped(sent.value))
	}
	b.Query = b.raw
	if len(b.raw) > 1 {
		b.Query = rapid.Permutation(b.raw).Draw(b.t, "order")
	}
	return b.Request
}
