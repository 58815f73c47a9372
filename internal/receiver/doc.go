// Package receiver takes uploads over HTTP and from JSON Lines, checks them and publishes them to the queue. It needs
// the queue alone: while the database is unavailable, it continues with the credentials that it knows.
//
//	receiver.go  Receiver: configuration, Run, shutdown, metrics
//	uploads.go   one request of POST /uploads: authenticate, read, split, publish, confirm
//	body.go      reads and decompresses a body within limits of size, time and memory
//	memory.go    memoryBudget: the memory of all requests, and the shares of credentials and teams
//	rates.go     rates: requests and bytes per second of credentials and teams
//	split.go     finds the uploads of a body
//	lines.go     UploadLines: publishes JSON Lines for a trusted publisher
package receiver
