// Package abuse is a trial of a well-behaved tenant of 100 devices beside clients that overload the service. It
// measures the failed requests and the p99 of that tenant, without and under each attack, and the peak memory of each
// process. It runs roomsensor, nats-server and TimescaleDB as real processes, and each attacker as a process with a
// lower priority, because a real attacker has a machine of its own.
//
//	run.go       options; order of the trial: each attack after a measurement without one
//	env.go       database, NATS, teams and the processes under test
//	tenant.go    the well-behaved tenant: requests at a constant rate, and what becomes of them
//	attacks.go   the list of attacks, and what each must not break
//	faults.go    the SQL side of attacks: prepared states, faults of the database, checks
//	attacker.go  the process of an attacker, and its HTTP client
//	uploads.go   attacks on the receiver and the workers
//	requests.go  attacks on the API
//	dashboard.go attacks on the dashboard, and the people of the tenant
//	report.go    results as a table and JSON
package abuse
