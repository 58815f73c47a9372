// Package store reads and writes the database: it converts rows to the domain and SQLSTATEs to domain errors, and runs
// what must happen in one transaction. It is the only package that uses db, the generated queries. A method that serves
// a team takes its id, and every query below it filters by team; operators, the worker and maintenance work on all
// teams.
//
//	store.go                            pools, roles, transactions
//	dial_*.go                           detection of servers that do not respond
//	standby.go standby_watch.go         reads on standbys
//	errors.go                           errors of PostgreSQL to errors of the domain
//	binary.go                           binary format of rows and of COPY
//	teams.go keys.go service_secrets.go teams, API keys and ingest keys, the cursor secret
//	users.go memberships.go             people and their teams
//	sign_in_*.go sessions.go            how people sign in to the dashboard
//	audit.go                            who makes a change, and the audit log
//	subjects.go subject_json.go         what is stored about people whom assignments name, and its erasure
//	devices.go device_hardware.go       devices and the hardware units in them
//	assignments.go timeline.go          assignments
//	nights.go                           nights of rooms
//	readings.go readings_*.go latest.go pages, newest readings, statistics
//	current.go                          the live snapshot, of one team or of several
//	readings_write.go                   batches of the worker
//	feed.go feed_round.go               the change feed: watermark, rounds, purge
//	aggregates.go aggregate_*.go        hours and days
//	coverage.go                         coverage and gaps
//	export.go export_*.go               CSV exports
//	idempotency_keys.go rate_window.go  what the API counts and remembers of requests
//	streams.go                          when the streams of uploads were created
//	rejected_uploads.go                 rejects
//	delete.go                           deletion of devices and teams
//	layout.go                           chunks and how they are stored
//	statistics.go doctor.go             figures of the whole database and its server
//	trace.go                            spans of statements
package store
