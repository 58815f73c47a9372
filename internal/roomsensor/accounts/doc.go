// Package accounts has the people who use the dashboard: their accounts, memberships and links, and what they set for
// their teams. It does no I/O.
//
//	person.go         people, members, links with which they sign in, attempts to sign in
//	team_settings.go  what people set for a team: time zone, night, limits, alerts
//	share.go          links that show a page to anybody
package accounts
