// Package schema holds the migrations of the database and runs them.
//
// The migrations are the same for both editions of TimescaleDB. What differs between the editions is created by
// procedures that every Up calls after the migrations, because an installation may change its edition.
//
//	schema.go           Up, Status, Pending and Fingerprint
//	roles.go            EnsureRoles: the roles of the processes
//	rights.go           how the rights of the roles differ from those that EnsureRoles gives them
//	0000N_*.sql         goose migrations, one per topic; see docs/development.md for how to add one
//	roles/grants.sql    rights of the processes' roles
//	edition/ensure.sql  readings_hourly: an aggregate (Community edition) or a view (Apache edition)
//	edition/chunks.sql  length of new chunks of readings
//	edition/layout.sql  policies for old readings (Community edition)
//	sqlc/stubs.sql      objects that only sqlc reads
package schema
