// Package receiver takes uploads over HTTP and from JSON Lines, checks them and publishes them to the queue. It needs
// the queue alone: while the database is unavailable, it continues with the credentials that it knows. Dry runs and
// lists of rejects need the database.
//
//	receiver.go  Receiver: configuration, Run, shutdown, metrics
//	request.go   one request: route, authenticate, limit, respond
//	uploads.go   POST /uploads: read, split, publish, confirm
//	dry_run.go   POST /uploads?dry_run=true: what a worker would reject
//	sources.go   POST /sources/{source_id}: store the message of a source; a preview of it
//	rejects.go   GET /rejects: the rejects of the credential's team
//	database.go  what dry runs and lists of rejects need of the database, and their share of it
//	body.go      reads, charges and decompresses a body within limits of size, time, memory and CPUs
//	memory.go    the memory of all requests, and the shares of credentials and teams
//	rates.go     rates: requests and bytes per second of credentials and teams
//	split.go     finds the uploads of a body
//	lines.go     UploadLines: publishes JSON Lines for a trusted publisher
package receiver
