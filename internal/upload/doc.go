// Package upload is the wire format of uploads: what a device sends, how much of it can be stored, and what a reject
// keeps of the rest (decision 41). It needs no database: its callers read the installations of units.
//
//	upload.go    Check, the quick check of a receiver; Parse, the full one of a worker; Part, the payload of a reject
//	reading.go   parses the readings
//	resolve.go   assigns the readings to devices, and rejects the others
//	ignored.go   counts unknown members by name
//	document.go  tokenizes the JSON object and explains syntax errors
package upload
