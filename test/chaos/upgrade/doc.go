// Package upgrade is a trial of an upgrade at noon. It builds the last release and this version, and runs them side by
// side on one database and one NATS while clients upload and read: first the last release alone, then the migrations of
// this version, then both versions, this version alone, the last release again on the new tables, and this version
// again. No request may fail. At the end it compares the tables with the ledger of what was sent.
//
//	options.go  size of a trial: Full and Short
//	base.go     finds and builds the last release
//	env.go      database with roles, NATS, migrations, and rolling processes
//	balancer.go distributes requests over the processes of both versions
//	reader.go   clients of the API
//	run.go      order of the trial
//	report.go   what became of the requests of each stage
package upgrade
