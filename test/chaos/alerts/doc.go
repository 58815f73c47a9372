// Package alerts is a trial of the alerts in deploy/prometheus. It runs TimescaleDB, nats-server, the processes of
// roomsensor and Prometheus as real processes, and injects the fault that an operator would meet for each alert. It
// waits until the alert fires, runs the queries and commands of its runbook, removes the fault as the runbook says, and
// waits until the alert clears. Meanwhile it records which other alerts fire. The rules are the real ones, in which a
// second stands for a minute.
//
//	run.go       options; order of the trial: each fault after all alerts are quiet
//	rules.go     the rules with shorter times, and the exceptions
//	env.go       database, NATS, the processes under test and Prometheus
//	load.go      the usual load: uploads, requests to the API and to the dashboard
//	faults.go    the list of faults
//	requests.go  faults that clients of the API, the dashboard and the receiver meet
//	queue.go     faults of NATS and the stream
//	ingest.go    faults that workers meet
//	database.go  faults of the database
//	incidents.go follows the page on incidents; finds commands of pages that nothing ran
//	runbook.go   runs the queries and commands of runbooks
//	report.go    results as a table and JSON
package alerts
