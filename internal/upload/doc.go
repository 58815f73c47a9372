// Package upload is the wire format of uploads: what a device sends, how much of it can be stored, and what a reject
// keeps of the rest (decision 41). It reads the text alone; which device a unit belongs to is resolved by package
// worker.
//
//	upload.go    Check, the quick check of a receiver; Parse, the full one of a worker; Part, the payload of a reject
//	reading.go   parses the readings
//	document.go  tokenizes the JSON object and explains syntax errors
package upload
