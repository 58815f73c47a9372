// Package roomsensor is the domain: the types that the other packages share and the rules that hold for them. It does
// no I/O and imports the standard library and uuid only.
//
//	id.go             the order of ids
//	team.go           teams, and the roles of people in them
//	key.go            API keys and ingest keys, rate limit, idempotency key
//	subject.go        people whom assignments name: what is stored of them, and its erasure
//	audit.go          who makes a change, and the audit log
//	device.go         devices, their status and hardware units, patches
//	alias.go          aliases: units that their senders name differently
//	source.go         sources, whose messages a mapping turns into uploads
//	assignment.go     assignments of devices; assignment_change.go changes them
//	held.go           which assignment held a device at a time
//	person_key.go     which assignments name the same person
//	note.go           notes about devices and people
//	reading.go        metrics, readings, the merge rule, statistics, exports
//	change.go         the change feed
//	window.go         time ranges and their parameters
//	local_time.go     local times that people enter, and when clocks reach a time
//	upload.go         what the worker stores of uploads: measurements, heartbeats, rejects
//	stream_share.go   how much of the stream is of a team
//	position.go       positions of the primary that an answer must include
//	chunk.go          how many chunks an upload creates
//	reject_advice.go  what people can do about rejects
//	format.go         text form of numbers and timestamps
//	validate.go       rules for names, tags, hardware ids, addresses and passwords
//	error.go          errors
//	code.go           error codes of the API and the receiver, with their documentation
//
// The packages below it have the parts of the domain that uploads do not need. Each imports only those before it:
// aggregate, completeness, airquality, alerting, accounts.
//
// Each kind of failure has one term:
//
//   - An Error is the answer to an API client: a Code, a message and, if one is at fault, a parameter.
//   - ErrNotFound and a NotFoundError mean that something does not exist, or belongs to another team.
//   - A conflict (HardwareConflictError, AssignmentConflictError, accounts.MemberConflictError) means that a change
//     contradicts what is stored. Packages admin and dashboard word these errors.
//   - ErrRefused, ErrNotStorable and ErrBlocked are the write failures of a part of a batch, not of the whole database.
//   - A Reject is a part of an upload that was not stored, with the Reason.
package roomsensor
