// Package admin carries out the operator's commands: it calls the store and the queue, and returns the objects that the
// commands print as JSON. Its errors are full sentences that say what to do, where a cause is known.
//
//   - operator.go: Operator, which holds the database connection; teams, API keys and ingest keys
//   - device.go: devices, the units in them, and assignments
//   - reject.go: lists, shows and replays rejects
//   - stream.go: uploads from a file or standard input, and a replay of the stream
//   - migrate.go: migrations, and how readings lie on disk
//   - maintenance.go: rewrites old chunks in primary-key order
//   - view.go: the JSON objects of teams, keys, devices and assignments
//   - errors.go: turns an error into the sentence that the operator sees
package admin
