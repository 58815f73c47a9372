// Package conformance connects the rules of docs/contract.md with the tests that prove them.
//
// A test calls Covers with the ids of the rules that it proves. `go tool task test` fails if a rule in force has no
// such test; `go tool task conformance` writes the table docs/conformance.md.
//
//	conformance.go       Rules, parsed from the anchors of the contract; Covers and NeedsMachine for tests
//	unobservable.tsv     the few rules that no client can observe, with the reason
//	citations_test.go    checks that every rule cited in the repository exists
package conformance
