// Package readers opens a Parquet export with the readers that clients use, and compares what they find with the CSV of
// the same readings (A7.3). DuckDB also reads an archive. It is a module of its own, so that DuckDB and Arrow stay
// out of the product's dependencies.
//
//	export_test.go   an export in both formats
//	arrow_test.go    Apache Arrow's reader for Go
//	archive_test.go  an archive, read with the statements of its page; it needs a database too
//	duckdb_test.go   DuckDB, whose Go module contains the engine; it needs a C compiler
package readers
