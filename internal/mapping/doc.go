// Package mapping turns the message of a sender into measurements (A11). It does no I/O. Its callers resolve the units.
//
//	mapping.go   Mapping: what a mapping says
//	parse.go     parses a mapping strictly, and names the position of what is wrong
//	path.go      paths to values
//	format.go    the formats that the service ships, in formats/
//	apply.go     Apply: the measurements, problems and ignored elements of a message
//	value.go     numbers, units, signals and conditions of an element
//	time.go      formats of times
//	line.go      line protocol
//	document.go  JSON text as a tree
//	suggest.go   Suggest: the paths of a message, and the metrics that they fit
package mapping
