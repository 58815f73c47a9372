// Package burst is a trial of a fleet that was offline for days and comes back at once. It checks that everything is
// stored, measures how long uploads of other devices take meanwhile, and how fast different numbers of workers process
// the same backlog. It runs roomsensor, nats-server and TimescaleDB as real processes.
//
//	run.go       options; order of the trial
//	env.go       an installation per phase: database, NATS, team, processes
//	load.go      uploads of the late devices
//	late.go      phase 1: the burst through the receiver
//	fresh.go     uploads of other devices during the burst, and their time to visibility
//	snapshot.go  client of /devices/current, checked against the table
//	backlog.go   phases 2 and 3: a backlog with 1, 2 and 4 workers, and with workers that join and leave
//	report.go    results as tables and JSON
package burst
