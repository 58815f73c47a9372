package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// The headers of responses that a script may read, beside those that it always may, and those of requests that it may
// send.
const (
	exposedHeaders = "Content-Disposition, ETag, Idempotent-Replayed, RateLimit-Limit, RateLimit-Remaining, " +
		"RateLimit-Reset, Retry-After, WWW-Authenticate, X-Request-Id, X-Row-Count"
	acceptedHeaders = "Authorization, Content-Type, Idempotency-Key, If-None-Match"
	acceptedMethods = "GET, HEAD, PATCH"
	// preflightAge is the time in seconds for which a browser may remember the response to a preflight request: two hours,
	// the longest that Chromium accepts.
	preflightAge = "7200"
)

// allowOrigins lets browsers call the API from the configured origins (decision 51 a). It runs before the key is
// checked, so that a script can read errors, too. The middleware of echo does not fit: it answers 204 to OPTIONS of
// every origin, also if it does not allow it.
func (s *server) allowOrigins(next echo.HandlerFunc) echo.HandlerFunc {
	if len(s.origins) == 0 {
		return next
	}
	return func(c echo.Context) error {
		r, h := c.Request(), c.Response().Header()
		if !strings.HasPrefix(r.URL.Path, version+"/") {
			return next(c)
		}
		h.Add("Vary", "Origin") // Also without an origin: a cache must not give the response to one.
		origins := r.Header.Values("Origin")
		if len(origins) != 1 || !slices.Contains(s.origins, origins[0]) {
			return next(c)
		}
		h.Set("Access-Control-Allow-Origin", origins[0])
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			h.Set("Access-Control-Expose-Headers", exposedHeaders)
			return next(c)
		}
		h.Set("Access-Control-Allow-Methods", acceptedMethods)
		h.Set("Access-Control-Allow-Headers", acceptedHeaders)
		h.Set("Access-Control-Max-Age", preflightAge)
		return c.NoContent(http.StatusNoContent)
	}
}
