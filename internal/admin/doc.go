// Package admin carries out the operator's commands: it calls the store and the queue, and returns the objects that the
// commands print as JSON. Its errors are full sentences that say what to do, where a cause is known.
//
//   - operator.go: Operator, which holds the database connection; teams and their settings
//   - find.go: finds teams and devices by their names
//   - key.go: API keys and ingest keys
//   - device.go: devices, and the units in them
//   - assignment.go: assignments
//   - reading.go: deletes and archives readings; archive/ writes the files
//   - retention.go: how long readings of teams and devices are kept
//   - source.go: sources
//   - delete.go: deletes devices and teams
//   - user.go: people who sign in to the dashboard
//   - person.go: exports and erases people whom assignments name
//   - audit.go: lists the audit log
//   - reject.go: lists, shows and replays rejects
//   - stream.go: uploads from a file or standard input, and a replay of the stream
//   - migrate.go: migrations, and how readings lie on disk
//   - maintenance.go: rewrites old chunks in primary-key order
//   - doctor/: checks an installation
//   - support/: collects what support needs
//   - view.go: the JSON objects of teams, keys and devices
//   - errors.go: turns an error into the sentence that the operator sees
package admin
