// Package browser tests the pages that people use in Debian's Chromium: the documentation and the dashboard. It is a
// module of its own, so that the driver of the browser stays out of the product's dependencies.
//
//	chromium_test.go   finds and starts Chromium
//	tab_test.go        a tab with a size, a color scheme, and scripts on or off; what it logged and requested
//	keyboard_test.go   moves the focus, presses keys, and checks that everything can be reached
//	audit_test.go      accessibility of a page (audit.js), with a broken page per rule
//	docs_test.go       the pages of the documentation
//	site_test.go       the dashboard over the data of a running demo, and people who sign in
//	dashboard_test.go  the pages of the dashboard
//	crawl_test.go      finds the pages of the dashboard by following links
//	flow_test.go       what people do, with the keyboard alone: a team for each flow, and the list of flows
//	flow_*_test.go     the flows of people, assignments, keys, rejects, exports, the overview and devices
//	security_test.go   what other sites, other people and stored markup cannot do
package browser
