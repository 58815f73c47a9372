// Package otlptest is a collector of traces for tests: a real server that decodes OTLP over HTTP.
package otlptest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"roomsensor/test/proctest"
)

// Collector keeps the spans that it receives.
type Collector struct {
	URL string // base URL, for OTEL_EXPORTER_OTLP_ENDPOINT

	mu       sync.Mutex
	spans    []*Span
	text     []byte // of all requests, decoded
	requests []http.Header
}

// Span is a span with the name of its process.
type Span struct {
	*tracepb.Span

	Service string
}

// New starts a collector, which stops with the test.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", c.receive)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

func (c *Collector) receive(w http.ResponseWriter, r *http.Request) {
	body, err := gzip.NewReader(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, err := io.ReadAll(body)
	var request tracepb.TracesData // The encoding of ExportTraceServiceRequest, without gRPC.
	if err == nil {
		err = proto.Unmarshal(text, &request)
	}
	if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, text...)
	c.requests = append(c.requests, r.Header)
	for _, resource := range request.GetResourceSpans() {
		service := attribute(resource.GetResource().GetAttributes(), "service.name")
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, &Span{s, service})
			}
		}
	}
}

// Await waits until the collector has a span with a name, and returns the first one.
func (c *Collector) Await(t *testing.T, name string) *Span {
	t.Helper()
	var found *Span
	require.Eventually(t, func() bool {
		found = c.Find(func(s *Span) bool { return s.GetName() == name })
		return found != nil
	}, proctest.Patience, 10*time.Millisecond, "no span %s", name)
	return found
}

// Find returns the first span that matches, or nil.
func (c *Collector) Find(matches func(*Span) bool) *Span {
	for _, s := range c.Spans() {
		if matches(s) {
			return s
		}
	}
	return nil
}

// Spans returns all spans.
func (c *Collector) Spans() []*Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Span(nil), c.spans...)
}

// Text returns all that was received, decoded but not parsed.
func (c *Collector) Text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.text)
}

// Requests returns the headers of all requests.
func (c *Collector) Requests() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]http.Header(nil), c.requests...)
}

// TraceID returns the id of the trace in hexadecimal digits, as in traceparent.
func (s *Span) TraceID() string { return hex.EncodeToString(s.GetTraceId()) }

// ID returns the id of the span in hexadecimal digits.
func (s *Span) ID() string { return hex.EncodeToString(s.GetSpanId()) }

// ParentID returns the id of the parent in hexadecimal digits; empty for a root.
func (s *Span) ParentID() string { return hex.EncodeToString(s.GetParentSpanId()) }

// Attribute returns the text of an attribute; empty if there is none.
func (s *Span) Attribute(name string) string { return attribute(s.GetAttributes(), name) }

// LinksTo reports whether the span links to another one.
func (s *Span) LinksTo(other *Span) bool {
	for _, link := range s.GetLinks() {
		if string(link.GetTraceId()) == string(other.GetTraceId()) && string(link.GetSpanId()) == string(other.GetSpanId()) {
			return true
		}
	}
	return false
}

func attribute(list []*commonpb.KeyValue, name string) string {
	for _, a := range list {
		if a.GetKey() == name {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}
