// Package world runs receivers, workers, the stream and the tables as one simulated world in one goroutine bubble
// (testing/synctest). The receiver, the queue and the worker are those of the product. Below them, at NATS and at the
// database, are models that fail as the real ones do. One seed is one run: the same steps in the same order.
//
//	world.go    World and its steps: what processes send is ordered and delayed by the seed
//	plan.go     the faults of a seed: how often each happens, and when processes are killed
//	stream.go   model of the stream: its messages, and the consumer of the workers
//	nats.go     JetStream and the connection of a process to the stream
//	tables.go   model of the tables: the merge rule, device states, rejects
//	process.go  receivers, workers and senders
//	run.go      Run: sends the requests of a ledger under faults, and compares the tables with it
//
// The processes run only between two steps. A step is the effect of something that one of them sent, such as a commit.
// It happens when all goroutines of the bubble wait, so that no step depends on the scheduler.
package world
