package dashboard

import (
	"net/http"

	"roomsensor/internal/dashboard/assignments"
	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/dashboard/sources"
	"roomsensor/internal/export"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
)

// routes is the only table of routes, with the role that each needs.
func (p *pages) routes() []page.Route { //nolint:funlen // One line per route.
	get, post, team := http.MethodGet, http.MethodPost, page.TeamPath
	return []page.Route{
		{Method: get, Path: "/", Handle: p.people.Start},
		{Method: get, Path: "/sign-in", Public: true, Handle: p.people.ShowSignIn},
		{Method: post, Path: "/sign-in", Public: true, Handle: p.people.SignIn},
		{Method: get, Path: "/kept-form", Handle: p.people.ShowKeptForm},
		{Method: post, Path: "/sign-out", Handle: p.people.SignOut},
		{Method: get, Path: "/invitation/:token", Public: true, Handle: p.people.ShowInvitation},
		{Method: post, Path: "/invitation/:token", Public: true, Handle: p.people.AcceptInvitation},
		{Method: get, Path: "/mails/stop/:stop", Public: true, Handle: p.team.ShowStop},
		{Method: post, Path: "/mails/stop/:stop", Public: true, Handle: p.team.StopMails},
		{Method: get, Path: accounts.SharedPath(":token"), Public: true, Handle: p.shares.Show},
		{Method: get, Path: "/account", Handle: p.people.ShowAccount},
		{Method: post, Path: "/account/name", Handle: p.people.ChangeName},
		{Method: post, Path: "/account/format", Handle: p.people.ChooseFormat},
		{Method: post, Path: "/account/password", Handle: p.people.ChangePassword},
		{Method: post, Path: "/account/sign-out", Handle: p.people.SignOutEverywhere},
		{Method: get, Path: "/teams", Handle: p.people.ListTeams},
		{Method: get, Path: team, Role: roomsensor.Viewer, Handle: p.overview.Show},
		{Method: get, Path: team + "/tiles", Role: roomsensor.Viewer, Stream: true, Handle: p.overview.Stream},
		{Method: get, Path: team + "/assignments", Role: roomsensor.Viewer, Handle: p.assignments.ShowTimeline},
		{
			Method: get, Path: team + "/assignments/start/:device_id", Role: roomsensor.Editor,
			Handle: p.assignments.Show(assignments.Start),
		},
		{
			Method: post, Path: team + "/assignments/start/:device_id", Role: roomsensor.Editor,
			Handle: p.assignments.Save(assignments.Start),
		},
		{
			Method: get, Path: team + "/assignments/move", Role: roomsensor.Editor,
			Handle: p.assignments.Show(assignments.Move),
		},
		{
			Method: post, Path: team + "/assignments/move", Role: roomsensor.Editor,
			Handle: p.assignments.Save(assignments.Move),
		},
		{
			Method: get, Path: team + "/assignments/:assignment_id/transfer", Role: roomsensor.Editor,
			Handle: p.assignments.Show(assignments.Transfer),
		},
		{
			Method: post, Path: team + "/assignments/:assignment_id/transfer", Role: roomsensor.Editor,
			Handle: p.assignments.Save(assignments.Transfer),
		},
		{
			Method: get, Path: team + "/assignments/:assignment_id/edit", Role: roomsensor.Editor,
			Handle: p.assignments.Show(assignments.Edit),
		},
		{
			Method: post, Path: team + "/assignments/:assignment_id/edit", Role: roomsensor.Editor,
			Handle: p.assignments.Save(assignments.Edit),
		},
		{
			Method: get, Path: team + "/assignments/:assignment_id/end", Role: roomsensor.Editor,
			Handle: p.assignments.Show(assignments.End),
		},
		{
			Method: post, Path: team + "/assignments/:assignment_id/end", Role: roomsensor.Editor,
			Handle: p.assignments.Save(assignments.End),
		},
		{
			Method: get, Path: team + "/assignments/:assignment_id/delete", Role: roomsensor.Editor,
			Handle: p.assignments.Show(assignments.Delete),
		},
		{
			Method: post, Path: team + "/assignments/:assignment_id/delete", Role: roomsensor.Editor,
			Handle: p.assignments.Save(assignments.Delete),
		},
		{Method: get, Path: team + "/alerts", Role: roomsensor.Viewer, Handle: p.team.ShowAlerts},
		{Method: post, Path: team + "/alerts/mails", Role: roomsensor.Viewer, Handle: p.team.ChooseMails},
		{Method: post, Path: team + "/alerts/rules", Role: roomsensor.Admin, Handle: p.team.SaveAlertRules},
		{Method: get, Path: team + "/audit", Role: roomsensor.Admin, Handle: p.team.ShowAudit},
		{Method: get, Path: team + "/members", Role: roomsensor.Admin, Handle: p.people.ShowMembers},
		{Method: post, Path: team + "/members", Role: roomsensor.Admin, Handle: p.people.InviteMember},
		{Method: post, Path: team + "/members/:user_id/role", Role: roomsensor.Admin, Handle: p.people.ChangeRole},
		{Method: post, Path: team + "/members/:user_id/remove", Role: roomsensor.Admin, Handle: p.people.RemoveMember},
		{Method: post, Path: team + "/members/:user_id/reset", Role: roomsensor.Admin, Handle: p.people.ResetMember},
		{Method: post, Path: team + "/members/:user_id/revoke", Role: roomsensor.Admin, Handle: p.people.RevokeLinks},
		{Method: get, Path: team + "/nights", Role: roomsensor.Viewer, Handle: p.nights.Show},
		{Method: get, Path: team + "/nights.csv", Role: roomsensor.Viewer, Handle: p.nights.Download},
		{Method: get, Path: team + "/people", Role: roomsensor.Viewer, Handle: p.nights.ShowPeople},
		{Method: get, Path: team + "/people.csv", Role: roomsensor.Viewer, Handle: p.nights.DownloadPeople},
		{Method: get, Path: team + "/people/:assignment_id", Role: roomsensor.Viewer, Handle: p.nights.ShowPerson},
		{Method: post, Path: team + "/people/:assignment_id/notes", Role: roomsensor.Editor, Handle: p.nights.AddNote},
		{
			Method: post, Path: team + "/people/:assignment_id/notes/:note_id/delete", Role: roomsensor.Editor,
			Handle: p.nights.DeleteNote,
		},
		{Method: get, Path: team + "/compare", Role: roomsensor.Viewer, Handle: p.devices.ShowComparison},
		{Method: get, Path: team + "/export", Role: roomsensor.Viewer, Handle: p.exports.Show},
		{
			Method: get, Path: team + "/export/readings.csv", Role: roomsensor.Viewer, Stream: true,
			Handle: p.exports.Download(export.ReadingsCSV),
		},
		{
			Method: get, Path: team + "/export/readings.parquet", Role: roomsensor.Viewer, Stream: true,
			Handle: p.exports.Download(export.Parquet),
		},
		{
			Method: get, Path: team + "/export/spreadsheet.xlsx", Role: roomsensor.Viewer, Stream: true,
			Handle: p.exports.Download(export.Excel),
		},
		{
			Method: get, Path: team + "/export/spreadsheet.csv", Role: roomsensor.Viewer, Stream: true,
			Handle: p.exports.Download(export.ExcelCSV),
		},
		{Method: get, Path: team + "/shares", Role: roomsensor.Editor, Handle: p.shares.List},
		{Method: post, Path: team + "/shares", Role: roomsensor.Editor, Handle: p.shares.Create},
		{Method: post, Path: team + "/shares/:share_id/revoke", Role: roomsensor.Editor, Handle: p.shares.Revoke},
		{Method: get, Path: team + "/settings", Role: roomsensor.Viewer, Handle: p.team.ShowSettings},
		{Method: post, Path: team + "/settings", Role: roomsensor.Admin, Handle: p.team.SaveSettings},
		{Method: post, Path: team + "/settings/limits", Role: roomsensor.Admin, Handle: p.team.ChangeRules},
		{Method: get, Path: team + "/keys", Role: roomsensor.Admin, Handle: p.keys.List},
		{Method: get, Path: team + "/keys/:kind/new", Role: roomsensor.Admin, Handle: p.keys.ShowForm},
		{Method: post, Path: team + "/keys/:kind", Role: roomsensor.Admin, Handle: p.keys.Create},
		{Method: get, Path: team + "/keys/:kind/:key_id", Role: roomsensor.Admin, Handle: p.keys.Show},
		{Method: post, Path: team + "/keys/:kind/:key_id/replace", Role: roomsensor.Admin, Handle: p.keys.Replace},
		{Method: post, Path: team + "/keys/:kind/:key_id/revoke", Role: roomsensor.Admin, Handle: p.keys.Revoke},
		{Method: get, Path: team + "/sources", Role: roomsensor.Admin, Handle: p.sources.List},
		{Method: get, Path: team + "/sources/new", Role: roomsensor.Admin, Handle: p.sources.ShowForm},
		{Method: post, Path: team + "/sources", Role: roomsensor.Admin, Handle: p.sources.Create},
		{Method: get, Path: team + "/sources/:source_id", Role: roomsensor.Admin, Handle: p.sources.Show},
		{
			Method: post, Path: team + "/sources/:source_id/mapping", Role: roomsensor.Admin, MaxForm: sources.MaxMappingForm,
			Handle: p.sources.ChangeMapping,
		},
		{Method: post, Path: team + "/sources/:source_id/state", Role: roomsensor.Admin, Handle: p.sources.ChangeState},
		{Method: post, Path: team + "/sources/:source_id/delete", Role: roomsensor.Admin, Handle: p.sources.Delete},
		{Method: get, Path: team + "/rejects", Role: roomsensor.Admin, Handle: p.rejects.ShowGroups},
		{Method: get, Path: team + "/rejects/list", Role: roomsensor.Admin, Handle: p.rejects.List},
		{Method: get, Path: team + "/devices/new", Role: roomsensor.Admin, Handle: p.rejects.ShowUnitForm},
		{Method: post, Path: team + "/devices/new", Role: roomsensor.Admin, Handle: p.rejects.RegisterUnit},
		{Method: get, Path: team + "/devices/many", Role: roomsensor.Editor, Handle: p.assignments.ShowMany},
		{Method: get, Path: team + "/devices/many.csv", Role: roomsensor.Editor, Handle: p.assignments.DownloadMany},
		{
			Method: post, Path: team + "/devices/many", Role: roomsensor.Editor, MaxForm: assignments.MaxManyForm,
			Handle: p.assignments.SaveMany,
		},
		{Method: post, Path: team + "/rejects/replay", Role: roomsensor.Admin, Handle: p.rejects.ReplayGroup},
		{Method: get, Path: team + "/rejects/:reject_id", Role: roomsensor.Admin, Handle: p.rejects.Show},
		{Method: get, Path: team + "/rejects/:reject_id/payload", Role: roomsensor.Admin, Handle: p.rejects.Download},
		{Method: post, Path: team + "/rejects/:reject_id/replay", Role: roomsensor.Admin, Handle: p.rejects.ReplayReject},
		{Method: get, Path: team + "/devices/retired", Role: roomsensor.Viewer, Handle: p.devices.ListRetired},
		{Method: get, Path: team + "/devices/:device_id", Role: roomsensor.Viewer, Handle: p.devices.ShowDevice},
		{Method: post, Path: team + "/devices/:device_id/name", Role: roomsensor.Editor, Handle: p.devices.RenameDevice},
		{Method: post, Path: team + "/devices/:device_id/tags", Role: roomsensor.Editor, Handle: p.devices.TagDevice},
		{
			Method: post, Path: team + "/devices/:device_id/hardware", Role: roomsensor.Editor,
			Handle: p.devices.ChangeHardware,
		},
		{Method: post, Path: team + "/devices/:device_id/retire", Role: roomsensor.Editor, Handle: p.devices.RetireDevice},
		{Method: post, Path: team + "/devices/:device_id/notes", Role: roomsensor.Editor, Handle: p.devices.AddNote},
		{
			Method: post, Path: team + "/devices/:device_id/notes/:note_id/delete", Role: roomsensor.Editor,
			Handle: p.devices.DeleteNote,
		},
	}
}
