// Package process starts, watches and stops a process of the service: the API, the dashboard, the receiver and worker,
// and the demo.
//
//   - process.go: Run with its ordered shutdown, and Process, what a running process registers and uses
//   - dependencies.go: opens the database and the queue, and checks that they can be used; errors for operators
//   - health.go: Health, which probes dependencies in the background and knows whether the process is ready
//   - maintenance.go: rewrites one chunk of readings, for the maintenance loop and the maintain command
//   - ops.go: the ops listener with /livez, /readyz, /metrics and profiles, and the client of /readyz
//   - metrics.go: the metrics that every process has, and those of its database pools
//   - tracing.go: the export of traces
package process
