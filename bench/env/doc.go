// Package env is the environment of the benchmarks: a TimescaleDB and a NATS server, processes of roomsensor, a team
// with devices and readings, and API keys.
//
//	env.go         database server, databases, programs, processes, queue
//	data.go        devices and readings; physical layouts
//	server.go      processor time and restart of the database server
//	teams.go       many small teams in a database of their own
//	keys.go        API keys, each for as many requests as the limiter allows
//	statements.go  time of statements and of commits
package env
