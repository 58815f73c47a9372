// Package harness contains what all trials of the ingest path share, wherever the service runs and whatever faults
// happen: it creates a fleet, sends the uploads of a ledger, waits until the workers are done, and compares the tables,
// the exports, the copies of clients of the change feed and the stream with the ledger.
//
//	env.go      options and programs; directory, logs, progress, unexpected events and cleanup of a trial
//	testbed.go  database, NATS and processes of a trial; opens and closes its environment
//	service.go  the service under test: operator commands, SQL, queue state
//	fleet.go    teams, keys, devices and units; temporary databases
//	send.go     receiver client; sends requests on time and records their outcomes
//	watch.go    time from confirmation to visibility
//	follow.go   clients of the change feed
//	trial.go    order of a trial: send, settle, verify, replay, verify again
//	tables.go   reads tables, exports and the stream
//	report.go   common part of reports and their output
package harness
