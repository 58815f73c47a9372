package openapitest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Transport checks every answer that passes through it, so that any client can
// be held to the document.
func (d *Document) Transport(next http.RoundTripper) http.RoundTripper {
	return &transport{d, next}
}

type transport struct {
	document *Document
	next     http.RoundTripper
}

// RoundTrip reads the whole answer; its error is also one of the contract.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	got, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // A transport passes errors on as they are.
	}
	body, err := io.ReadAll(got.Body)
	if err := errors.Join(err, got.Body.Close()); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	got.Body = io.NopCloser(bytes.NewReader(body))
	return got, t.document.Check(&Answer{r, got.StatusCode, got.Header, body})
}
