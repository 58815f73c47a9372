// Command run runs the tests of the module on a TimescaleDB server that it starts for them and removes afterwards;
// `go tool task test` calls it.
//
//	run [ARGS...]      runs `go test ARGS...`, by default on all packages but the trials; after a run of all, the tests
//	                   must prove the contract exactly as docs/conformance.md says
//	run -race          as without, with the race detector in the packages whose code has goroutines
//	run trials         runs the trials: the packages that run the whole service for long
//	run conformance    runs all tests and writes docs/conformance.md
//	run clean          stops and removes the server that plain `go test` runs share
//
// Files:
//
//	main.go       commands
//	gotest.go     selects packages, builds the programs under test and runs gotestsum
//	results.go    reads the events of `go test -json`: skips, claims on the contract, and times
//	page.go       writes and checks docs/conformance.md
package main
