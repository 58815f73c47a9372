// Package roomsensor is the domain: the types that the other packages share and the rules that hold for them. It does
// no I/O and imports the standard library and uuid only.
//
//	team.go           teams and what people set for them: time zone, thresholds
//	key.go            API keys and ingest keys, rate limit, idempotency key
//	person.go         people, their roles, members and links
//	subject.go        people whom assignments name: what is stored of them, and its erasure
//	audit.go          who makes a change, and the audit log
//	device.go         devices, their status and hardware units, patches
//	alias.go          aliases: units that their senders name differently
//	assignment.go     assignments of devices
//	reading.go        metrics, readings, the merge rule, statistics, exports
//	change.go         the change feed
//	window.go         time ranges and their parameters
//	calendar.go       the hours and days of aggregates, and when clocks reach a time
//	local_time.go     local times that people enter
//	night.go          nights of rooms
//	expected.go       readings that a window should have; coverage.go gap.go which of them exist
//	aggregate.go      aggregates; exact_sum.go adds without rounding errors
//	upload.go         what the worker stores of uploads: measurements, heartbeats, rejects
//	chunk.go          how many chunks an upload creates
//	reject_advice.go  what people can do about rejects
//	format.go         text form of numbers and timestamps
//	validate.go       rules for names, tags and hardware ids
//	error.go          errors
//	code.go           error codes of the API and the receiver, with their documentation
//
// Each kind of failure has one term:
//
//   - An Error is the answer to an API client: a Code, a message and, if one is at fault, a parameter.
//   - ErrNotFound and a NotFoundError mean that something does not exist, or belongs to another team.
//   - A conflict (HardwareConflictError, AssignmentConflictError, MemberConflictError) means that a change contradicts
//     what is stored. Packages admin and dashboard word these errors.
//   - ErrRefused, ErrNotStorable and ErrBlocked are the write failures of a part of a batch, not of the whole database.
//   - A Reject is a part of an upload that was not stored, with the Reason.
package roomsensor
