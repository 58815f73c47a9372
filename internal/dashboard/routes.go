package dashboard

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/export"
	"roomsensor/internal/roomsensor"
)

// teamPath begins the paths of a team, which only its members may use.
const teamPath = "/teams/:team_id"

// route is one page or one form. HEAD works wherever GET does.
type route struct {
	method, path string
	role         roomsensor.Role // that the person needs in the team, if the path begins with teamPath
	public       bool            // needs no session
	stream       bool            // no deadline; the handler writes the response itself
	handle       func(context.Context, *visit) error
}

// routes is the only table of routes.
func (s *server) routes() []route { //nolint:funlen // One line per route.
	get, post := http.MethodGet, http.MethodPost
	return []route{
		{method: get, path: "/", handle: s.start},
		{method: get, path: "/sign-in", public: true, handle: s.showSignIn},
		{method: post, path: "/sign-in", public: true, handle: s.signIn},
		{method: post, path: "/sign-out", handle: s.signOut},
		{method: get, path: "/invitation/:token", public: true, handle: s.showInvitation},
		{method: post, path: "/invitation/:token", public: true, handle: s.acceptInvitation},
		{method: get, path: "/account", handle: s.showAccount},
		{method: post, path: "/account/name", handle: s.changeName},
		{method: post, path: "/account/password", handle: s.changePassword},
		{method: post, path: "/account/sign-out", handle: s.signOutEverywhere},
		{method: get, path: "/teams", handle: s.listTeams},
		{method: get, path: teamPath, role: roomsensor.Viewer, handle: s.showOverview},
		{method: get, path: teamPath + "/tiles", role: roomsensor.Viewer, stream: true, handle: s.streamTiles},
		{method: get, path: teamPath + "/assignments", role: roomsensor.Viewer, handle: s.showAssignments},
		{method: get, path: teamPath + "/assignments/start/:device_id", role: roomsensor.Editor, handle: s.showStart},
		{method: post, path: teamPath + "/assignments/start/:device_id", role: roomsensor.Editor, handle: s.startAssignment},
		{
			method: get, path: teamPath + "/assignments/:assignment_id/transfer", role: roomsensor.Editor,
			handle: s.showTransfer,
		},
		{
			method: post, path: teamPath + "/assignments/:assignment_id/transfer", role: roomsensor.Editor,
			handle: s.transferAssignment,
		},
		{method: get, path: teamPath + "/assignments/:assignment_id/end", role: roomsensor.Editor, handle: s.showEnd},
		{method: post, path: teamPath + "/assignments/:assignment_id/end", role: roomsensor.Editor, handle: s.endAssignment},
		{method: get, path: teamPath + "/audit", role: roomsensor.Admin, handle: s.showAudit},
		{method: get, path: teamPath + "/members", role: roomsensor.Admin, handle: s.showMembers},
		{method: post, path: teamPath + "/members", role: roomsensor.Admin, handle: s.inviteMember},
		{method: post, path: teamPath + "/members/:user_id/role", role: roomsensor.Admin, handle: s.changeRole},
		{method: post, path: teamPath + "/members/:user_id/remove", role: roomsensor.Admin, handle: s.removeMember},
		{method: post, path: teamPath + "/members/:user_id/reset", role: roomsensor.Admin, handle: s.resetMember},
		{method: post, path: teamPath + "/members/:user_id/revoke", role: roomsensor.Admin, handle: s.revokeInvitation},
		{method: get, path: teamPath + "/nights", role: roomsensor.Viewer, handle: s.showNights},
		{method: get, path: teamPath + "/nights.csv", role: roomsensor.Viewer, handle: s.downloadNights},
		{method: get, path: teamPath + "/export", role: roomsensor.Viewer, handle: s.showExport},
		{
			method: get, path: teamPath + "/export/readings.csv", role: roomsensor.Viewer, stream: true,
			handle: s.download(export.ReadingsCSV),
		},
		{
			method: get, path: teamPath + "/export/readings.parquet", role: roomsensor.Viewer, stream: true,
			handle: s.download(export.Parquet),
		},
		{method: get, path: teamPath + "/settings", role: roomsensor.Viewer, handle: s.showSettings},
		{method: post, path: teamPath + "/settings", role: roomsensor.Admin, handle: s.saveSettings},
		{method: get, path: teamPath + "/keys", role: roomsensor.Admin, handle: s.showKeys},
		{method: get, path: teamPath + "/keys/:kind/new", role: roomsensor.Admin, handle: s.showKeyForm},
		{method: post, path: teamPath + "/keys/:kind", role: roomsensor.Admin, handle: s.createKey},
		{method: get, path: teamPath + "/keys/:kind/:key_id", role: roomsensor.Admin, handle: s.showKey},
		{method: post, path: teamPath + "/keys/:kind/:key_id/replace", role: roomsensor.Admin, handle: s.replaceKey},
		{method: post, path: teamPath + "/keys/:kind/:key_id/revoke", role: roomsensor.Admin, handle: s.revokeKey},
		{method: get, path: teamPath + "/rejects", role: roomsensor.Admin, handle: s.showRejects},
		{method: get, path: teamPath + "/rejects/list", role: roomsensor.Admin, handle: s.listRejects},
		{method: get, path: teamPath + "/rejects/register", role: roomsensor.Admin, handle: s.showUnitForm},
		{method: post, path: teamPath + "/rejects/register", role: roomsensor.Admin, handle: s.registerUnit},
		{method: post, path: teamPath + "/rejects/replay", role: roomsensor.Admin, handle: s.replayGroup},
		{method: get, path: teamPath + "/rejects/:reject_id", role: roomsensor.Admin, handle: s.showReject},
		{method: get, path: teamPath + "/rejects/:reject_id/payload", role: roomsensor.Admin, handle: s.downloadReject},
		{method: post, path: teamPath + "/rejects/:reject_id/replay", role: roomsensor.Admin, handle: s.replayReject},
		{method: get, path: teamPath + "/devices/:device_id", role: roomsensor.Viewer, handle: s.showDevice},
		{method: post, path: teamPath + "/devices/:device_id/name", role: roomsensor.Editor, handle: s.renameDevice},
		{method: post, path: teamPath + "/devices/:device_id/tags", role: roomsensor.Editor, handle: s.tagDevice},
		{method: post, path: teamPath + "/devices/:device_id/hardware", role: roomsensor.Editor, handle: s.changeHardware},
	}
}

// ofTeam reports whether a route belongs to a team.
func (r *route) ofTeam() bool { return r.path == teamPath || strings.HasPrefix(r.path, teamPath+"/") }

// navigation lists the pages of a team as the navigation shows them. A page appears to those who have its role.
var navigation = []struct{ title, path string }{
	{"Overview", teamPath},
	{"Last night", teamPath + "/nights"},
	{"Assignments", teamPath + "/assignments"},
	{"Export", teamPath + "/export"},
	{"Keys", teamPath + "/keys"},
	{"Rejects", teamPath + "/rejects"},
	{"Team", teamPath + "/settings"},
	{"Audit log", teamPath + "/audit"},
}

// navEntry is a link of the navigation.
type navEntry struct {
	Title, Path string
	Current     bool
}

// navigation returns the links for a visit.
func (s *server) navigation(v *visit) (entries []navEntry) {
	if v.role == roomsensor.NoRole {
		return nil
	}
	for _, page := range navigation {
		if v.role >= s.roles[page.path] {
			entries = append(entries, navEntry{
				Title: page.title, Path: v.path() + strings.TrimPrefix(page.path, teamPath),
				Current: isBelow(v.echo.Path(), page.path),
			})
		}
	}
	return entries
}

// isBelow reports whether a route belongs to a page of the navigation: Overview has the pages of devices.
func isBelow(path, page string) bool {
	if page == teamPath {
		return path == page || strings.HasPrefix(path, teamPath+"/devices/")
	}
	ofSettings := page == teamPath+"/settings" && isBelow(path, teamPath+"/members")
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
