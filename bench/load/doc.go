// Package load sends requests and measures throughput in a closed loop, or latency in an open loop.
//
//	load.go    closed and open loop
//	client.go  HTTP client that hashes bodies
package load
