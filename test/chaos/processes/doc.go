// Package processes is a trial of the ingest path with real processes and real faults. It sends uploads through the
// receiver and directly to the stream while it kills workers, the receiver, NATS and PostgreSQL, suspends workers for
// longer than ack_wait, and disturbs the connections between workers, queue and database. Then it compares the tables
// with the ledger of what was sent, replays the whole stream, and compares again.
//
//	options.go  size of a trial: Full and Short
//	plan.go     random schedule of faults
//	faults.go   carries out the schedule
//	env.go      database, NATS, workers, receiver and API
//	crash.go    SIGKILL for all processes of PostgreSQL
//	program.go  a process that is killed and restarted
//	proxy.go    Toxiproxy between processes
//	run.go      order of the trial and its report
package processes
