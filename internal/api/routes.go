package api

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/roomsensor"
)

// version is the version segment of {base_url} (spec 9).
const version = "/v1"

// requestTimeout bounds every request but an export. It is longer than the
// longest wait of a change with an Idempotency-Key, 8 seconds.
const requestTimeout = 10 * time.Second

const (
	exportName = "/readings.csv"
	exportPath = version + exportName
)

// route is one operation of spec 4.
type route struct {
	method, path string
	scope        roomsensor.Scope // the least that the key must have
	timeout      time.Duration    // 0: the handler keeps its own
	handle       func(*call) error
}

// routes lists the operations of spec 4. HEAD works wherever GET does
// (decision 42).
func (s *server) routes() []route {
	reads := []struct {
		path   string
		handle func(*call) error
	}{
		{"/team", s.getTeam},
		{"/devices", s.listDevices},
		{"/devices/current", s.listCurrentDevices},
		{"/devices/:device_id", s.getDevice},
		{"/devices/:device_id/assignments", s.listAssignments},
		{"/devices/:device_id/readings", s.listReadings},
	}
	routes := []route{
		{http.MethodPatch, version + "/devices/:device_id", roomsensor.ScopeReadWrite, requestTimeout, s.patchDevice},
		{http.MethodGet, exportPath, roomsensor.ScopeRead, 0, s.exportReadings},
		{http.MethodHead, exportPath, roomsensor.ScopeRead, 0, s.exportReadings},
	}
	for _, read := range reads {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			routes = append(routes, route{method, version + read.path, roomsensor.ScopeRead, requestTimeout, read.handle})
		}
	}
	return routes
}

// decodePath makes percent-encoding no matter where a path is matched, but for
// an encoded slash, which stays a part of its segment.
func decodePath(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		url := c.Request().URL
		if url.RawPath != "" && !strings.Contains(strings.ToLower(url.RawPath), "%2f") {
			url.RawPath = ""
		}
		return next(c)
	}
}

// wholePath makes a path with nothing where an id should be an unknown one.
func wholePath(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if strings.Contains(c.Request().URL.EscapedPath(), "//") {
			return echo.ErrNotFound
		}
		return next(c)
	}
}

// refuseOtherMethods answers 405 to the methods that a path does not take,
// OPTIONS included. A path that is written out wins over one with an id, also
// where only the latter takes the method.
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

func methodNotAllowed(allowed []string) echo.HandlerFunc {
	allow := strings.Join(allowed, ", ")
	return func(c echo.Context) error {
		c.Response().Header().Set("Allow", allow)
		return roomsensor.CodeMethodNotAllowed.New()
	}
}
