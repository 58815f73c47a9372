// Package queue is the JetStream stream of uploads with its consumers. Publishers and other tools rely on its names:
// the stream UPLOADS, the subjects uploads.<team>.- for uploads of a team and uploads.-.<hardware_id> for those without
// one, and the consumer ingest.
//
//	queue.go     Queue: names, limits, connection, health check
//	declare.go   DeclareMissing creates the stream and the consumer; Declare also changes existing ones
//	publish.go   Publish stores uploads in the stream
//	backlogs.go  the messages of each team that wait for a worker, and their limit
//	batch.go     batcher: messages that are published at the same time share an atomic batch
//	consume.go   Consume and ConsumePriorityLane deliver uploads; a Delivery is acknowledged, returned or extended
//	state.go     State reports the backlog; Replay delivers uploads again
//	purge.go     Purge deletes stored uploads, when the stream is nearly full the oldest ones of the largest team
package queue
