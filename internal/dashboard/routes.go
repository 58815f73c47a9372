package dashboard

import (
	"context"
	"net/http"

	"roomsensor/internal/dashboard/assignments"
	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/dashboard/sources"
	"roomsensor/internal/export"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
)

// handleFunc answers the requests of a route.
type handleFunc = func(context.Context, *page.Visit) error

// public returns a route that needs no session.
func public(method, path string, handle handleFunc) page.Route {
	return page.Route{Method: method, Path: path, Public: true, Handle: handle}
}

// own returns a route of a person without a team.
func own(method, path string, handle handleFunc) page.Route {
	return page.Route{Method: method, Path: path, Handle: handle}
}

// get returns a page of a team for those who have at least a role.
func get(role roomsensor.Role, path string, handle handleFunc) page.Route {
	return page.Route{Method: http.MethodGet, Path: page.TeamPath + path, Role: role, Handle: handle}
}

// stream returns a response of a team without a deadline, for all members.
func stream(path string, handle handleFunc) page.Route {
	r := get(roomsensor.Viewer, path, handle)
	r.Stream = true
	return r
}

// post returns a form of a team for those who have at least a role.
func post(role roomsensor.Role, path string, handle handleFunc) page.Route {
	return large(role, path, 0, handle)
}

// large is post for a form that may have more bytes than others.
func large(role roomsensor.Role, path string, maxForm int64, handle handleFunc) page.Route {
	return page.Route{
		Method: http.MethodPost, Path: page.TeamPath + path, Role: role, MaxForm: maxForm, Handle: handle,
	}
}

// routes is the only table of routes, with the role that each needs.
func (p *pages) routes() []page.Route { //nolint:funlen // One line per route.
	const viewer, editor, admin = roomsensor.Viewer, roomsensor.Editor, roomsensor.Admin
	return []page.Route{
		own(http.MethodGet, "/", p.people.Start),
		public(http.MethodGet, "/sign-in", p.people.ShowSignIn),
		public(http.MethodPost, "/sign-in", p.people.SignIn),
		own(http.MethodGet, "/kept-form", p.people.ShowKeptForm),
		own(http.MethodPost, "/sign-out", p.people.SignOut),
		public(http.MethodGet, "/invitation/:token", p.people.ShowInvitation),
		public(http.MethodPost, "/invitation/:token", p.people.AcceptInvitation),
		public(http.MethodGet, "/mails/stop/:stop", p.team.ShowStop),
		public(http.MethodPost, "/mails/stop/:stop", p.team.StopMails),
		public(http.MethodGet, accounts.SharedPath(":token"), p.shares.Show),
		own(http.MethodGet, "/account", p.people.ShowAccount),
		own(http.MethodPost, "/account/name", p.people.ChangeName),
		own(http.MethodPost, "/account/format", p.people.ChooseFormat),
		own(http.MethodPost, "/account/password", p.people.ChangePassword),
		own(http.MethodPost, "/account/sign-out", p.people.SignOutEverywhere),
		own(http.MethodGet, "/teams", p.people.ListTeams),
		get(viewer, "", p.overview.Show),
		stream("/tiles", p.overview.Stream),
		get(viewer, "/assignments", p.assignments.ShowTimeline),
		get(editor, "/assignments/start/:device_id", p.assignments.Show(assignments.Start)),
		post(editor, "/assignments/start/:device_id", p.assignments.Save(assignments.Start)),
		get(editor, "/assignments/move", p.assignments.Show(assignments.Move)),
		post(editor, "/assignments/move", p.assignments.Save(assignments.Move)),
		get(editor, "/assignments/:assignment_id/transfer", p.assignments.Show(assignments.Transfer)),
		post(editor, "/assignments/:assignment_id/transfer", p.assignments.Save(assignments.Transfer)),
		get(editor, "/assignments/:assignment_id/edit", p.assignments.Show(assignments.Edit)),
		post(editor, "/assignments/:assignment_id/edit", p.assignments.Save(assignments.Edit)),
		get(editor, "/assignments/:assignment_id/end", p.assignments.Show(assignments.End)),
		post(editor, "/assignments/:assignment_id/end", p.assignments.Save(assignments.End)),
		get(editor, "/assignments/:assignment_id/delete", p.assignments.Show(assignments.Delete)),
		post(editor, "/assignments/:assignment_id/delete", p.assignments.Save(assignments.Delete)),
		get(viewer, "/alerts", p.team.ShowAlerts),
		post(viewer, "/alerts/mails", p.team.ChooseMails),
		post(admin, "/alerts/rules", p.team.SaveAlertRules),
		get(admin, "/audit", p.team.ShowAudit),
		get(admin, "/members", p.people.ShowMembers),
		post(admin, "/members", p.people.InviteMember),
		post(admin, "/members/:user_id/role", p.people.ChangeRole),
		post(admin, "/members/:user_id/remove", p.people.RemoveMember),
		post(admin, "/members/:user_id/reset", p.people.ResetMember),
		post(admin, "/members/:user_id/revoke", p.people.RevokeLinks),
		get(viewer, "/nights", p.nights.Show),
		get(viewer, "/nights.csv", p.nights.Download),
		get(viewer, "/people", p.nights.ShowPeople),
		get(viewer, "/people.csv", p.nights.DownloadPeople),
		get(viewer, "/people/:assignment_id", p.nights.ShowPerson),
		post(editor, "/people/:assignment_id/notes", p.nights.AddNote),
		post(editor, "/people/:assignment_id/notes/:note_id/delete", p.nights.DeleteNote),
		get(viewer, "/compare", p.devices.ShowComparison),
		get(viewer, "/export", p.exports.Show),
		stream("/export/readings.csv", p.exports.Download(export.ReadingsCSV)),
		stream("/export/readings.parquet", p.exports.Download(export.Parquet)),
		stream("/export/spreadsheet.xlsx", p.exports.Download(export.Excel)),
		stream("/export/spreadsheet.csv", p.exports.Download(export.ExcelCSV)),
		get(editor, "/shares", p.shares.List),
		post(editor, "/shares", p.shares.Create),
		post(editor, "/shares/:share_id/revoke", p.shares.Revoke),
		get(viewer, "/settings", p.team.ShowSettings),
		post(admin, "/settings", p.team.SaveSettings),
		post(admin, "/settings/limits", p.team.ChangeRules),
		get(admin, "/keys", p.keys.List),
		get(admin, "/keys/:kind/new", p.keys.ShowForm),
		post(admin, "/keys/:kind", p.keys.Create),
		get(admin, "/keys/:kind/:key_id", p.keys.Show),
		post(admin, "/keys/:kind/:key_id/replace", p.keys.Replace),
		post(admin, "/keys/:kind/:key_id/revoke", p.keys.Revoke),
		get(admin, "/sources", p.sources.List),
		get(admin, "/sources/new", p.sources.ShowForm),
		post(admin, "/sources", p.sources.Create),
		get(admin, "/sources/:source_id", p.sources.Show),
		large(admin, "/sources/:source_id/mapping", sources.MaxMappingForm, p.sources.ChangeMapping),
		post(admin, "/sources/:source_id/state", p.sources.ChangeState),
		post(admin, "/sources/:source_id/delete", p.sources.Delete),
		get(admin, "/rejects", p.rejects.ShowGroups),
		get(admin, "/rejects/list", p.rejects.List),
		get(admin, "/devices/new", p.rejects.ShowUnitForm),
		post(admin, "/devices/new", p.rejects.RegisterUnit),
		get(editor, "/devices/many", p.assignments.ShowMany),
		get(editor, "/devices/many.csv", p.assignments.DownloadMany),
		large(editor, "/devices/many", assignments.MaxManyForm, p.assignments.SaveMany),
		post(admin, "/rejects/replay", p.rejects.ReplayGroup),
		get(admin, "/rejects/:reject_id", p.rejects.Show),
		get(admin, "/rejects/:reject_id/payload", p.rejects.Download),
		post(admin, "/rejects/:reject_id/replay", p.rejects.ReplayReject),
		get(viewer, "/devices/retired", p.devices.ListRetired),
		get(viewer, "/devices/:device_id", p.devices.ShowDevice),
		post(editor, "/devices/:device_id/name", p.devices.RenameDevice),
		post(editor, "/devices/:device_id/tags", p.devices.TagDevice),
		post(editor, "/devices/:device_id/hardware", p.devices.ChangeHardware),
		post(editor, "/devices/:device_id/retire", p.devices.RetireDevice),
		post(editor, "/devices/:device_id/notes", p.devices.AddNote),
		post(editor, "/devices/:device_id/notes/:note_id/delete", p.devices.DeleteNote),
	}
}
