package api

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/openapitest"
)

// RouteTable is every route that the router knows, as "GET /v1/team"; for the
// tests of what must hold for each of them.
func RouteTable() []string {
	s := &server{docsURL: "https://docs.example"}
	var all []string
	for _, r := range s.router(http.NotFoundHandler()).(*echo.Echo).Routes() {
		if r.Method != echo.RouteNotFound {
			all = append(all, r.Method+" "+r.Path)
		}
	}
	slices.Sort(all) // By method, then path.
	return all
}

var parameterInPath = regexp.MustCompile(`:(\w+)`)

// Operation is the route as the OpenAPI document names it: "GET /team"; ok is
// false for one outside of the versioned address.
func Operation(route string) (name string, ok bool) {
	method, path, _ := strings.Cut(route, " ")
	path, ok = strings.CutPrefix(path, version)
	return method + " " + parameterInPath.ReplaceAllString(path, "{$1}"), ok
}

// The route table and the OpenAPI document name the same operations. Beside
// them there are the root and the docs, and one route that is there to refuse.
func TestRoutesAreThoseOfTheDocument(t *testing.T) {
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
	require.Equal(t, []string{"GET /", "GET /docs", "GET /docs/*", "HEAD /", "HEAD /docs", "HEAD /docs/*"}, others)
}
