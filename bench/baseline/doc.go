// Package baseline runs what roomsensor is compared with: PostgreSQL's own tools on the same server.
//
//	programs.go  paths of the tools
//	pgbench.go   pgbench of a statement
//	psql.go      COPY of a query to CSV with psql
//	copyfrom.go  CopyFrom of pgx
package baseline
