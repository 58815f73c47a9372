// Package aggregate has the rules of hourly and daily aggregates of readings. It does no I/O.
//
//	calendar.go   the hours and days of aggregates
//	aggregate.go  aggregates of a device, their exports, and the tally that counts readings
//	exact_sum.go  adds without rounding errors
package aggregate
