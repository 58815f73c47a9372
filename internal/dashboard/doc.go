// Package dashboard is the pages for the people of a team. It reads and changes data through the interfaces that the
// pages declare beside their handlers, and knows neither SQL nor the queue. Every page works without JavaScript;
// scripts add live updates and hover.
//
//	dashboard.go   configuration, New, NewServer
//	backend.go     all interfaces of the pages together
//	routes.go      the table of routes with the role that each needs; the navigation
//	request.go     one request: request id, recovery, access log, metrics, security headers
//	guard.go       the checks before a handler: session, membership, role
//	limits.go      what a team may do at the same time
//	visit.go       what handlers get: who, which team; how they read forms and answer
//	errors.go      errors as pages
//	session.go     sessions and their cookie
//	templates.go   layout and pages; functions.go has the functions of templates
//	assets.go      style sheets and scripts
//	signin.go      sign-in and sign-out; invitation.go has the links, account.go what people set for themselves
//	overview.go    the overview; overview_cache.go reads it once per team, overview_tile.go renders tiles
//	live.go        keeps the overview up to date; live_stream.go sends the tiles
//	device.go      the page of a device; device_window.go, device_table.go and device_edit.go have its parts
//	assignments.go the assignments of all devices; assignment_timeline.go has the page, assignment_form.go the forms
//	night.go       the nights of rooms; night_view.go has the page, night_csv.go the file
//	export.go      exports; export_view.go has the page
//	keys.go        keys; key_create.go and key_change.go have the forms
//	rejects.go     rejects; reject_replay.go replays them, unit.go finds and registers units
//	audit.go       the audit log
//	team.go        the settings of a team; members.go has its people, teams.go the choice of a team
//	web/           the embedded files: layout, pages, parts, style sheets, scripts
package dashboard
