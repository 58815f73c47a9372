// Package clientcmd has the commands get, export, sync, import and probe. They use the API or the receiver through the
// Go client, as a program of a team does. It must not import service, admin, store or queue: a machine that runs these
// commands reaches neither the database nor the queue.
//
//   - client.go: the connection to the API, its errors for people, and the flags that select devices and periods
//   - get.go: get; changes.go: get changes
//   - export.go: export and its progress; export_check.go: export check
//   - sync.go: sync
//   - import.go: the flags of import; importer.go: its two passes over the files
//   - probe.go: a check of the service from outside; probe_process.go: the process that repeats it
package clientcmd
