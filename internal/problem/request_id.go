package problem

import (
	"crypto/rand"
	"net/http"
	"strings"
)

// RequestIDHeader carries the request id on every response (decision 8).
const RequestIDHeader = "X-Request-Id"

// NewRequestID makes the identifier of one request; nothing of it comes from
// the client (decision 8).
func NewRequestID() string { return "req_" + strings.ToLower(rand.Text()) }

// WithRequestID gives every response of a handler its request id.
func WithRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(RequestIDHeader, NewRequestID())
		next.ServeHTTP(w, r)
	})
}
