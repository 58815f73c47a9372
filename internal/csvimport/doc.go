// Package csvimport turns CSV files into uploads (import of history, A15). It reads no file and uses no network: its
// caller opens the files and sends the uploads.
//
//	file.go     Open: the form of a file, recognised from its first lines; Next: its lines as readings
//	records.go  splits a text into records, and continues after a broken one
//	columns.go  the columns of the readings, and the values in them
//	units.go    hardware ids of units by other names
//	batch.go    Batch: readings as uploads
//	summary.go  Summary: what a file contains
package csvimport
