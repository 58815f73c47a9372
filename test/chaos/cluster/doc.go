// Package cluster is a trial of the service with several instances of everything: three NATS servers with a replicated
// stream, a PostgreSQL primary with a synchronous standby, two API processes and two receivers behind one address each,
// and four workers. Each runs in a container with a fixed address on a private network.
//
// While the uploads of a ledger are sent, the trial kills members, disconnects them from the network, and promotes the
// standby, which the APIs read from. The trial then compares the tables with the ledger and reports for each fault how
// long the service was unavailable.
//
//	options.go     size of a trial: Full and Short
//	run.go         order of the trial
//	faults.go      carries out the faults one after the other
//	export.go      the fault that kills an API during an export
//	env.go         network, processes of roomsensor, readiness
//	database.go    primary and standby, promotion
//	queue.go       NATS servers, leader of the stream
//	containers.go  containers and their network, by the docker command
//	images.go      images of the members
//	balancer.go    load balancer in front of APIs and receivers
//	outage.go      API client that measures outages
//	report.go      report and its tables
package cluster
