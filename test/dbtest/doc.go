// Package dbtest gives every test a TimescaleDB database of its own, which is dropped when the test ends.
//
// The server is TEST_DATABASE_URL, or a local one that this package starts and leaves running for later tests;
// `go tool task clean` stops it. Without a server a test fails; it is never skipped. `go tool task test` sets
// TEST_DATABASE_TEMPORARY too: its server is removed in the end, and its databases with it.
//
// Files:
//
//	dbtest.go      New, Empty, Edition
//	server.go      creates and drops databases on the server of this process
//	template.go    the migrated template database that New copies
//	sweep.go       drops databases that killed tests left behind
//	tap.go         a proxy that sees and can stop every message between a client and PostgreSQL
package dbtest
