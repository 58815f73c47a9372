// Package secretscan searches output of the service for secrets and for internals: logs, metrics, profiles, responses,
// tables.
//
// Files:
//
//	secretscan.go    known secrets, and anything that looks like a key
//	internals.go     SQL, stack traces, host names and texts of libraries in responses
package secretscan
