// Package service runs the processes of the service: it connects the API, the dashboard, the receiver and the worker to
// their dependencies.
//
//   - api.go: RunAPI, the process that answers clients
//   - ingest.go: RunIngest, the process that receives uploads, stores them, or both
//   - dashboard.go: RunDashboard, the process that serves pages for people
//   - notify.go: RunNotify, the process that evaluates alerts and sends mails
//   - maintenance.go: the loop that rewrites settled chunks in primary-key order
//   - statistics.go: the metrics of the whole database
//   - intervals*.go: how often both work; shorter in the trial of the alerts, never in a product build
package service
