// Package send sends the uploads of simulated devices to standard output, NATS or a receiver, at a given rate.
//
//   - send.go: Run, which sends a history and then live uploads, and reports its progress
//   - sink.go: Sink, the destination of uploads, and PacedSender, which sends each upload when it is due
//   - queue.go: the sink that publishes to the stream
//   - receiver.go: the sink that posts to a receiver and retries
package send
