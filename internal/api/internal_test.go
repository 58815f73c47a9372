package api

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/openapitest"
)

// RouteTable returns every route of the router, as "GET /v1/team". Tests outside of the package use it.
func RouteTable() []string {
	s := &server{}
	var all []string
	for _, r := range s.router(http.NotFoundHandler()).(*echo.Echo).Routes() {
		if r.Method != echo.RouteNotFound {
			all = append(all, r.Method+" "+r.Path)
		}
	}
	slices.Sort(all) // By method, then path.
	return all
}

// Router returns the router of the server of a listener.
func Router(server *http.Server) *echo.Echo {
	handler := server.Handler.(interface{ Unwrap() http.Handler }).Unwrap()
	return handler.(*apiHandler).Handler.(*echo.Echo)
}

var parameterInPath = regexp.MustCompile(`:(\w+)`)

// Operation returns the name of a route in the OpenAPI document: "GET /team"; ok is false outside of {base_url}.
func Operation(route string) (name string, ok bool) {
	method, path, _ := strings.Cut(route, " ")
	path, ok = strings.CutPrefix(path, version)
	return method + " " + parameterInPath.ReplaceAllString(path, "{$1}"), ok
}

// The router has the operations of the OpenAPI document, the root, the docs, and one route that only refuses.
func TestRoutes(t *testing.T) {
	t.Parallel()
	var operations, others []string
	for _, route := range RouteTable() {
		if name, ok := Operation(route); ok {
			operations = append(operations, name)
		} else {
			others = append(others, route)
		}
	}
	refusing := "PATCH /devices/current"
	require.Contains(t, operations, refusing)
	operations = slices.DeleteFunc(operations, func(name string) bool { return name == refusing })
	require.ElementsMatch(t, openapitest.API().Operations(), operations)
	require.Equal(t, []string{
		"GET /", "GET /docs", "GET /docs/*", "GET /favicon.ico", "GET /openapi.json", "GET /openapi.yaml", "GET /robots.txt",
		"HEAD /", "HEAD /docs", "HEAD /docs/*", "HEAD /favicon.ico", "HEAD /openapi.json", "HEAD /openapi.yaml", "HEAD /robots.txt",
	}, others)
}

// deny denies every request for ten minutes.
type deny struct{}

func (deny) CountRequest(context.Context, string) (roomsensor.RateVerdict, error) {
	return roomsensor.RateVerdict{Reset: roomsensor.RateWindow}, nil
}

// TestRateLimiterDenials checks that the number of denials in memory is bounded, also while none has expired.
func TestRateLimiterDenials(t *testing.T) {
	t.Parallel()
	m, err := newMetrics(nil, nil)
	require.NoError(t, err)
	l := newRateLimiter(deny{}, time.Now, m.rate)
	for i := range maxDenials + 10 {
		keyID := strconv.Itoa(i)
		_, err := l.verdict(t.Context(), keyID)
		require.NoError(t, err)
		_, denied := l.denied[keyID]
		require.True(t, denied)
	}
	require.Len(t, l.denied, maxDenials)
}
