// Package ledger records what senders sent and which answers they got, and derives what the tables must hold. It
// generates uploads whose values follow from their identity, keeps the outcome of each upload, and compares it with
// what is found. It does no I/O, so that every trial can use it.
//
//	ledger.go    outcomes of uploads, arrivals in the stream, counts
//	generate.go  deterministic requests of all kinds: valid, late, split, corrected, repeated, invalid
//	request.go   requests, uploads and their wire format
//	compare.go   comparison of readings, hours, rejects and devices with the ledger
//	verdict.go   counts of lost, duplicated, wrong and phantom rows
package ledger
