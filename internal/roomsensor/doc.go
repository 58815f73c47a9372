// Package roomsensor is the domain: devices, assignments, readings, keys,
// windows of time, the table of error codes, and the rules that hold for them
// whichever way they come in or go out. It does no I/O.
package roomsensor
