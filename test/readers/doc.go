// Package readers opens a Parquet export with the readers that clients use, and compares what they find with the CSV of
// the same readings (A7.3). It is a module of its own, so that DuckDB and Arrow stay out of the product's dependencies.
//
//	export_test.go   an export in both formats
//	arrow_test.go    Apache Arrow's reader for Go
//	duckdb_test.go   DuckDB, whose Go module contains the engine; it needs a C compiler
package readers
