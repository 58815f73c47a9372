// Package fleet is a trial of a large fleet: up to a million devices that upload a reading every 5 minutes, while their
// teams poll and export. It measures what the service needs for them and how late it becomes, and checks that nothing
// is lost, duplicated or wrong. It runs roomsensor, nats-server and TimescaleDB as real processes.
//
//	options.go   sizes of the trial
//	plan.go      which device sends what and when, and what the table must hold: computed, not kept in memory
//	env.go       database, NATS and processes
//	register.go  teams, keys and devices, inserted with SQL
//	loop.go      sends requests when they are due, however late the service is
//	load.go      uploads, polls, exports, and probes of the time to visibility
//	late.go      devices that come back at once after days
//	record.go    latencies and failures by kind of request
//	sample.go    queue, processes and disk over time
//	verify.go    comparison of the table with the plan, by count and checksum of each device
//	run.go       order of the trial
//	report.go    results as tables and JSON
package fleet
