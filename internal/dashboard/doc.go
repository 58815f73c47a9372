// Package dashboard is the pages for the people of a team. It reads and changes data through the interfaces that its
// packages declare, and knows neither SQL nor the queue. Every page works without JavaScript; scripts add live updates
// and hover.
//
//	dashboard.go  configuration, New, NewServer
//	routes.go     the table of routes with the role that each needs
//	page/         what all pages share: requests, checks, layout, forms, sessions, limits, words, style sheets
//	people/       sign-in, links, accounts, teams, members
//	team/         the settings of a team and its audit log
//	overview/     a tile for each device, and the streams that keep the tiles up to date
//	devices/      the page of a device, and the assignments of all devices
//	nights/       the nights of rooms
//	exports/      exports
//	keys/         API keys and upload credentials
//	rejects/      rejects, their replay, and hardware units
//
// The packages import page and not one another. The tests of pages are here, because they send requests to all of it.
package dashboard
