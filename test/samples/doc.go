// Package samples runs the samples in the docs pages, as a reader pastes them, against a running demo.
//
// `go test` runs the samples for bash, if bash, curl and jq are installed. `go tool task samples` runs those in all
// languages, and installs what they need on Debian.
//
//	pages_test.go       finds the samples in the pages
//	run_test.go         interpreters; runs one sample
//	proxy_test.go       an API that fails as a test wants
//	statements_test.go  SQL, and the formula for spreadsheets
//	samples_test.go     the demo, and what every sample must do
package samples
