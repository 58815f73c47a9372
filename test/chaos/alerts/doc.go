// Package alerts is a trial of the way from the metrics of the processes to the alerts in deploy/prometheus. It runs
// TimescaleDB, nats-server, the processes of roomsensor and Prometheus as real processes, and injects a fault for each
// source of metrics. It waits until the alerts fire, removes the fault, and waits until they clear. The rules are the
// real ones, in which a second stands for a minute; deploy/prometheus/rules_test.yml has a test of every rule.
//
//	run.go       options; order of the trial: each fault after all alerts are quiet
//	watch.go     states of the alerts over time
//	rules.go     the rules with shorter times
//	env.go       database, NATS, the processes under test and Prometheus
//	load.go      the usual load: uploads, requests to the API and to the dashboard
//	faults.go    the list of faults
//	report.go    results as a table and JSON
package alerts
