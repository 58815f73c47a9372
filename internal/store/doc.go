// Package store reads and writes the database: it converts rows to the domain and SQLSTATEs to domain errors, and runs
// what must happen in one transaction. It is the only package that uses db, the generated queries. A method that serves
// a team takes its id, and every query below it filters by team; operators, the worker and maintenance work on all
// teams.
//
//	store.go                            pools, roles, transactions
//	dial_*.go                           detection of servers that do not respond
//	errors.go                           errors of PostgreSQL to errors of the domain
//	binary.go                           binary format of rows and of COPY
//	teams.go keys.go service_secrets.go teams, API keys and ingest keys, the cursor secret
//	devices.go device_hardware.go       devices and the hardware units in them
//	assignments.go                      assignments
//	readings.go readings_hourly.go      pages, newest readings, statistics
//	readings_write.go                   batches of the worker
//	feed.go feed_round.go               the change feed: watermark, rounds, purge
//	aggregates.go aggregate_*.go        hours and days
//	export.go export_slice.go           CSV exports
//	idempotency_keys.go rate_window.go  what the API counts and remembers of requests
//	rejected_uploads.go                 rejects
//	layout.go                           chunks and how they are stored
package store
