package openapitest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing/iotest"
)

// Transport holds every answer of the API and of the receiver that passes
// through it to its document, so that any client can be a witness. What other
// listeners answer passes as it is.
func Transport(next http.RoundTripper) http.RoundTripper { return transport{next} }

type transport struct{ next http.RoundTripper }

// RoundTrip reads the whole answer, so it is not for tests that read slowly. An
// answer against the document is an error; one that breaks off is handed on.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	got, err := t.next.RoundTrip(r)
	document := documentOf(r.URL.Path)
	if err != nil || document == nil {
		return got, err //nolint:wrapcheck // A transport passes errors on as they are.
	}
	body, broken := io.ReadAll(got.Body)
	_ = got.Body.Close() // It was read.
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

// documentOf tells the listeners apart, which have no path in common.
func documentOf(path string) *Document {
	switch {
	case strings.HasPrefix(path, "/uploads"):
		return Receiver()
	case strings.HasPrefix(path, "/v1"), strings.HasPrefix(path, "/docs"):
		return API()
	}
	return nil
}

// CloseIdleConnections lets a client close those of the transport within.
func (t transport) CloseIdleConnections() {
	if closer, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}
