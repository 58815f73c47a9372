// Package monitoring checks the alerts and dashboards in deploy with the tools of Prometheus, and against the metrics
// of a running demo. `go test` skips what needs Prometheus, if it is not installed. `go tool task monitoring` skips
// nothing, and unpacks Debian's package below bin/.
//
//	rules_test.go        rules, runbooks and the names of metrics
//	panels_test.go       dashboards for Grafana
//	prometheus_test.go   a Prometheus that scrapes a demo evaluates every query; faults make alerts fire and clear
//	server_test.go       the Prometheus
package monitoring
