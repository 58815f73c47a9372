// Package parquetenc writes the Parquet file of the bulk export: one row per reading, in row groups whose memory is
// bounded (A7).
//
//	parquet.go  the columns and the writer
package parquetenc
