// Package worker stores uploads. It fetches them from the queue, groups them into batches, resolves which device each
// reading belongs to, writes every batch in one transaction, and acknowledges the uploads after the commit. A batch
// that the database refuses is bisected until the refused readings are found. They become rejects (decisions 37 to 41),
// or go back to the queue.
//
//	worker.go         Worker: configuration, Run, fetch, write, acknowledge
//	batch.go          delivery and batch; collect groups deliveries by size and age
//	resolve.go        result: what becomes of a delivery, resolved by package upload; its rejects
//	resolve_message.go  a message of a source: its mapping, and the result of each unit
//	source_counts.go  what became of the messages of each source, for people
//	write.go          writer: assembles and commits batches, bisects refused ones; Replay of a reject
//	outcomes.go       what becomes of refused uploads: outcomes of the last minute, parking, holding
//	priority_lane.go  stores fresh uploads early while there is a backlog
//	lane_batch.go     laneBatch: the uploads of the priority lane in one transaction, shared fairly by teams
//	maintain.go       reads the queue's state, purges the stream, deletes expired rejects
//	metrics.go        Prometheus metrics of the worker and the queue
package worker
