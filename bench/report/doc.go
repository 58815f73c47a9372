// Package report turns the results of rounds into rows with a verdict, prints them as a table and saves them as JSON.
//
//	row.go     ratio and verdict of a workload
//	report.go  machine, table, JSON
package report
