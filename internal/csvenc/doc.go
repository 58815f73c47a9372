// Package csvenc appends the CSV of exports: that of readings in its two shapes, long, with one line per reading, and
// wide, with one line per bucket, and those of aggregates and nights. Lines end with LF, fields are quoted only if RFC
// 4180 requires it, and null is an empty cell (decision 27).
//
//	csv.go         fields, and the long shape
//	wide.go        the wide shape and the names of its columns
//	style.go       separators, decimal commas and local times
//	aggregates.go  aggregates
//	nights.go      nights
package csvenc
