// Package api is the public HTTP API (spec parts 1 to 9). It reads and changes data through the interfaces in
// backend.go and knows neither SQL nor the queue. Every handler binds and validates its parameters, calls the backend
// once or twice, and renders the result.
//
//	api.go                configuration, New, NewServer
//	routes.go             operations, their scopes and deadlines, unknown paths and methods, the docs pages
//	backend.go            the interfaces that the API needs
//	request.go            one request: request id, recovery, access log
//	cors.go               which web pages may call the API
//	hints.go              messages about unknown paths and methods
//	metrics.go            the metrics of the API
//	memory.go             the limits of lists and scans
//	auth.go               the checks before a handler: key, rate limit, scope
//	rate.go               the rate limit of a key, with a memory of denials
//	errors.go             errors as responses
//	query.go              query parameters: syntax, ids, filters that a cursor keeps
//	page.go               lists, pages and cursors
//	respond.go            bodies, compression, ETag
//	team.go               GET /team
//	devices.go            GET /devices, GET /devices/{device_id}
//	current.go            GET /devices/current
//	snapshot*.go          snapshots for it: their content, and how they are read and kept
//	assignments.go        GET /devices/{device_id}/assignments
//	team_assignments.go   GET /assignments
//	readings.go           GET /devices/{device_id}/readings
//	changes.go            GET /readings/changes
//	coverage.go           GET /coverage
//	gaps.go               GET /devices/{device_id}/gaps
//	openmetrics.go        GET /metrics
//	patch.go              PATCH /devices/{device_id}
//	aggregates.go         GET /devices/{device_id}/aggregates
//	nights.go             GET /nights, GET /nights.csv
//	export.go             GET /readings.csv, GET /readings.parquet, GET /aggregates.csv
//	render/               JSON of devices, assignments, readings and results
//	feed/                 the watermark of the change feed, and requests that wait for a change
//	mergepatch/           parses the body of a PATCH
package api
