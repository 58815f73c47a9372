// Package config defines the settings of each process: flags, each with an environment variable of the same name, their
// defaults and their rules. The commands embed its structs; kong (the command line library) parses the values.
//
//   - config.go: API, Ingest and Migration, and the settings that they share: database, queue, log, ops
//   - dashboard.go: Dashboard, and the address that links to it need
//   - notify.go: Notify, and the server for mails
//   - mqtt.go: MQTT: the broker, and which topics belong to which source
//   - client.go: the commands that use the API and the receiver
//   - site.go: the addresses for clients, and the proxies in front of them
//   - tracing.go: the export of traces
//   - archive.go: ObjectStore, for an archive
//   - storage.go: the stream, rejects, maintenance and the layout of readings on disk
//   - value.go: the types of values: Duration, Age, ChunkInterval, Size, DailyWindow; and ValueError
//   - secret.go: Secret and Password, also from files
//   - url.go: the rules of URLs and addresses
//   - mask.go: masks secrets in texts and logs
package config
