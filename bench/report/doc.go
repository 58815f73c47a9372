// Package report turns the results of rounds into rows with a verdict, and prints them as a table.
//
//	row.go     ratio and verdict of a workload
//	report.go  machine, table
package report
