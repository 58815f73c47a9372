// Package dashboard is the pages for the people of a team. It reads and changes data through the interfaces that its
// packages declare, and knows neither SQL nor the queue. Every page works without JavaScript; scripts add live updates
// and hover.
//
//	dashboard.go  configuration, New, NewServer
//	routes.go     the table of routes with the role that each needs
//	page/         what all pages share: requests, checks, layout, forms, sessions, limits, style sheets
//	people/       sign-in, links, accounts, teams, members
//	team/         the settings of a team and its audit log
//	overview/     a tile for each device, and the streams that keep the tiles up to date
//	devices/      the pages of a device, the list of all, and comparisons
//	assignments/  the assignments of all devices, and their changes
//	nights/       the nights of rooms
//	shares/       links with which others see rooms or a night
//	exports/      exports
//	keys/         API keys and upload credentials
//	sources/      sources and their mappings
//	rejects/      rejects, their replay, and hardware units
//
// The packages import page and not one another. The tests of pages are here, because they send requests to all of it.
package dashboard
