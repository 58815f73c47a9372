// Package postgres finds a TimescaleDB for the demo, the localdb command, tests and benchmarks, or starts one.
//
// It tries, in this order: a URL that the caller was given, a local PostgreSQL that has the extension, Docker, and on
// Debian and Ubuntu a private copy of Debian's packages. A server that it starts keeps running, listens on 127.0.0.1
// only, and is found again through its data directory.
//
//	postgres.go      Start, Find, Stop, Remove; the order of the options; the settings of a server
//	datadir.go       a data directory: what it remembers of its server, its lock, where it is
//	installation.go  PostgreSQL installations of this machine, the private copy included
//	cluster.go       a server on this machine: initdb, start, stop, recovery from a crash
//	docker.go        a server in a container
//	connect.go       connections: waiting for a server, its edition and versions
//	debian/          makes the private copy
package postgres
