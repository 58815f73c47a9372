// Package service runs the processes of the service: it connects the API, the receiver and the worker to their
// dependencies.
//
//   - api.go: RunAPI, the process that answers clients
//   - ingest.go: RunIngest, the process that receives uploads, stores them, or both
//   - maintenance.go: the loop that rewrites settled chunks in primary-key order
package service
