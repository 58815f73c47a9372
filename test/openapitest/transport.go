package openapitest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing/iotest"
)

// Transport checks every response of the API and of the receiver that passes through it. Responses of other listeners
// pass unchecked.
func Transport(next http.RoundTripper) http.RoundTripper { return transport{next} }

type transport struct{ next http.RoundTripper }

// RoundTrip reads the complete response, so tests that read slowly cannot use it. A response that contradicts the
// document is an error; an incomplete response is returned unchecked.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	got, err := t.next.RoundTrip(r)
	document := documentOf(r.URL.Path)
	if err != nil || document == nil {
		return got, err //nolint:wrapcheck // A transport passes errors on as they are.
	}
	body, broken := io.ReadAll(got.Body)
	_ = got.Body.Close() // It was read completely.
	if broken != nil {
		got.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), iotest.ErrReader(broken)))
		return got, nil
	}
	got.Body = io.NopCloser(bytes.NewReader(body))
	if err := document.Check(&Answer{r, got.StatusCode, got.Header, body}); err != nil {
		return nil, err
	}
	return got, nil
}

// documentOf returns the document of a path; the listeners have no path in common.
func documentOf(path string) *Document {
	switch {
	case strings.HasPrefix(path, "/uploads"):
		return Receiver()
	case strings.HasPrefix(path, "/v1"), strings.HasPrefix(path, "/docs"):
		return API()
	}
	return nil
}

// CloseIdleConnections closes the idle connections of the inner transport.
func (t transport) CloseIdleConnections() {
	if closer, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}
