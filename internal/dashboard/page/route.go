package page

import (
	"context"
	"strings"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/roomsensor"
)

// TeamPath begins the paths of a team, which only its members may use.
const TeamPath = "/teams/:team_id"

// Route is one page or one form. HEAD works wherever GET does.
type Route struct {
	Method, Path string
	Role         roomsensor.Role // that the person needs in the team, if the path begins with TeamPath
	Public       bool            // needs no session
	MaxForm      int64           // size of its form in bytes; 0 means maxForm
	Stream       bool            // no deadline; the handler writes the response itself
	Handle       func(context.Context, *Visit) error
}

// OfTeam reports whether a route belongs to a team.
func (r *Route) OfTeam() bool { return r.Path == TeamPath || strings.HasPrefix(r.Path, TeamPath+"/") }

// right returns what a change through the route needs, or nil for a route without a team.
func (r *Route) right(v *Visit) *roomsensor.TeamRight {
	if !r.OfTeam() {
		return nil
	}
	return &roomsensor.TeamRight{TeamID: v.Team.ID, Role: r.Role}
}

// navigation lists the pages of a team as the navigation shows them. A page appears to those who have its role.
var navigation = []struct{ title, path string }{
	{"Overview", TeamPath},
	{"Alerts", TeamPath + "/alerts"},
	{"Last night", TeamPath + "/nights"},
	{"People", TeamPath + "/people"},
	{"Assignments", TeamPath + "/assignments"},
	{"Export", TeamPath + "/export"},
	{"Sources", TeamPath + "/sources"},
	{"Keys", TeamPath + "/keys"},
	{"Rejects", TeamPath + "/rejects"},
	{"Team", TeamPath + "/settings"},
	{"Audit log", TeamPath + "/audit"},
}

// navEntry is a link of the navigation.
type navEntry struct {
	Title, Path string
	Current     bool
}

// navigation returns the links for a visit.
func (s *Site) navigation(v *Visit) (entries []navEntry) {
	if v.Role == roomsensor.NoRole {
		return nil
	}
	for _, page := range navigation {
		if v.Role >= s.roles[page.path] {
			entries = append(entries, navEntry{
				Title: page.title, Path: v.Path() + strings.TrimPrefix(page.path, TeamPath),
				Current: isBelow(v.Echo.Path(), page.path),
			})
		}
	}
	return entries
}

// isBelow reports whether a route belongs to a page of the navigation: Overview has the pages of devices.
func isBelow(path, page string) bool {
	if page == TeamPath {
		return path == page || strings.HasPrefix(path, TeamPath+"/devices/")
	}
	ofSettings := page == TeamPath+"/settings" && (isBelow(path, TeamPath+"/members") || isBelow(path, TeamPath+"/shares"))
	return path == page || strings.HasPrefix(path, page+"/") || ofSettings
}

// trimSlash makes a path with a slash at its end the same as without.
func trimSlash(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		url := c.Request().URL
		if len(url.Path) > 1 && strings.HasSuffix(url.Path, "/") {
			url.Path, url.RawPath = strings.TrimSuffix(url.Path, "/"), strings.TrimSuffix(url.RawPath, "/")
		}
		return next(c)
	}
}
