// Command run runs the tests of the module on a TimescaleDB server that it starts for them and removes afterwards;
// `go tool task test` calls it.
//
//	run [ARGS...]      runs `go test ARGS...`, by default on all packages; after a run of all packages, the tests
//	                   must prove the contract exactly as docs/conformance.md says
//	run conformance    runs all tests and writes docs/conformance.md
//	run clean          stops and removes the server that plain `go test` runs share
//
// Files:
//
//	main.go       commands
//	gotest.go     runs gotestsum, with the race detector where a C compiler is available
//	results.go    reads the events of `go test -json`: skips, and claims on the contract
//	page.go       writes and checks docs/conformance.md
package main
