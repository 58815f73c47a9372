package api

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/export"
	"roomsensor/internal/roomsensor"
)

// version is the version segment of {base_url} (spec 9).
const version = "/v1"

// requestTimeout is the default of Config.Timeout. It is longer than the longest wait of a PATCH with an
// Idempotency-Key, which is 8 seconds.
const requestTimeout = 10 * time.Second

// route is one operation of spec 4 or of the additions.
type route struct {
	method, path string
	scope        roomsensor.Scope // that the key must have
	timeout      time.Duration    // 0 means that the handler sets its own deadlines
	keyInURL     bool             // whether the parameter key is a credential (spec 5, rule 5)
	handle       func(context.Context, *call) error
}

// routes returns the operations of spec 4 and of the additions. HEAD works wherever GET does (decision 42).
func (s *server) routes() []route {
	type read struct {
		path   string
		handle func(context.Context, *call) error
	}
	reads := []read{
		{"/team", s.getTeam},
		{"/devices", s.listDevices},
		{"/devices/current", s.listCurrentDevices},
		{"/devices/:device_id", s.getDevice},
		{"/devices/:device_id/assignments", s.listAssignments},
		{"/devices/:device_id/readings", s.listReadings},
		{"/devices/:device_id/gaps", s.listGaps},
		{"/assignments", s.listTeamAssignments},
		{"/coverage", s.listCoverage},
		{"/nights", s.listNights},
		{"/devices/:device_id/aggregates", s.listAggregates},
		{"/metrics", s.getMetrics},
	}
	exports := []read{
		{"/" + readingsCSV, s.exportReadings(export.ReadingsCSV)},
		{"/" + readingsParquet, s.exportReadings(export.Parquet)},
		{"/" + aggregatesCSV, s.exportAggregates},
		{"/" + nightsCSV, s.exportNights},
	}
	routes := []route{{
		method: http.MethodPatch, path: version + "/devices/:device_id", scope: roomsensor.ScopeReadWrite,
		timeout: s.timeout, handle: s.patchDevice,
	}}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		for _, r := range reads {
			routes = append(routes, route{
				method: method, path: version + r.path, scope: roomsensor.ScopeRead, timeout: s.timeout, handle: r.handle,
			})
		}
		routes = append(routes, route{
			method: method, path: version + "/readings/changes", scope: roomsensor.ScopeRead, handle: s.listChanges,
		})
		for _, r := range exports {
			routes = append(routes, route{
				method: method, path: version + r.path, scope: roomsensor.ScopeRead, keyInURL: true, handle: r.handle,
			})
		}
	}
	return routes
}

// addPath adds a path to those that messages list, in the notation of the OpenAPI document.
func (s *server) addPath(path string) {
	path = pathParameter.ReplaceAllString(path, "{$1}")
	if !slices.Contains(s.paths, path) {
		s.paths = append(s.paths, path)
		slices.Sort(s.paths)
	}
}

// pathParameter matches a parameter in a path of echo.
var pathParameter = regexp.MustCompile(`:(\w+)`)

// decodePath makes the router match the decoded path, so that percent-encoding does not matter. A path with an encoded
// slash is matched as it is, because the slash is a part of its segment.
func decodePath(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		url := c.Request().URL
		if url.RawPath != "" && !strings.Contains(strings.ToLower(url.RawPath), "%2f") {
			url.RawPath = ""
		}
		return next(c)
	}
}

// rejectEmptySegments returns not_found for paths with an empty segment (//), such as one without an id.
func rejectEmptySegments(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if strings.Contains(c.Request().URL.EscapedPath(), "//") {
			return echo.ErrNotFound
		}
		return next(c)
	}
}

// refuseOtherMethods answers 405 to the methods that a path does not support, including OPTIONS. A literal path takes
// precedence over one with an id even if only the latter supports the method.
func refuseOtherMethods(e *echo.Echo) {
	allowed := map[string][]string{}
	for _, r := range e.Routes() {
		allowed[r.Path] = append(allowed[r.Path], r.Method)
	}
	for path, methods := range allowed {
		slices.Sort(methods)
		e.RouteNotFound(path, methodNotAllowed(methods))
	}
	current := version + "/devices/current"
	e.PATCH(current, methodNotAllowed(allowed[current]))
}

// mountDocs serves the docs pages without a key, and redirects to them from the root and from the paths where programs
// look for an OpenAPI document.
func mountDocs(e *echo.Echo, docs http.Handler) {
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		e.Add(method, "/", redirect("docs"))
		e.Add(method, "/openapi.json", redirect("docs/openapi.json"))
		e.Add(method, "/openapi.yaml", redirect("docs/openapi.yaml"))
		e.Add(method, "/docs", docsPage(docs))
		e.Add(method, "/docs/*", docsPage(docs))
		e.Add(method, "/favicon.ico", docsPage(docs))
		e.Add(method, "/robots.txt", docsPage(docs))
	}
}

// redirect redirects to a relative address, because a proxy may serve the API below a path.
func redirect(address string) echo.HandlerFunc {
	return func(c echo.Context) error { return c.Redirect(http.StatusFound, address) }
}

// docsPage serves a docs page. An unknown page is an unknown path like any other, except that a browser gets a page.
func docsPage(docs http.Handler) echo.HandlerFunc {
	return func(c echo.Context) error {
		w := &notFoundFilter{ResponseWriter: c.Response()}
		docs.ServeHTTP(w, c.Request())
		if w.notFound {
			return unknownPage()
		}
		return nil
	}
}

// notFoundFilter drops a response with status 404 and its body, unless it is a page.
type notFoundFilter struct {
	http.ResponseWriter
	notFound bool
}

func (f *notFoundFilter) WriteHeader(status int) {
	page := strings.HasPrefix(f.Header().Get("Content-Type"), "text/html")
	if f.notFound = status == http.StatusNotFound && !page; !f.notFound {
		f.ResponseWriter.WriteHeader(status)
	}
}

func (f *notFoundFilter) Write(p []byte) (int, error) {
	if f.notFound {
		return len(p), nil
	}
	return f.ResponseWriter.Write(p) //nolint:wrapcheck // A writer returns errors unchanged.
}
