// Package fleet generates the devices and readings of the benchmarks. The same seed gives the same readings, and any
// part can be generated without the rest.
//
//	fleet.go   devices and readings
//	upload.go  readings in the wire format of uploads
//	binary.go  readings in PostgreSQL's binary COPY format
package fleet
