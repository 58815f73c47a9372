// Command roomsensor runs each process of the service and the operator's commands, as one subcommand each. Each
// subcommand reads its flags into a configuration and calls service, admin, demo, simulate/send or the client.
//
//   - main.go: main and version
//   - run.go: the command line and exit codes
//   - output.go: results as tables or JSON, and confirmations
//   - usage.go: usage errors, environment variables
//   - help.go: help and version flags; examples.go: the examples in the help
//   - values.go: the types of the operator's flags
//   - serve.go: api, ingest and healthcheck
//   - client.go: the connection of get and export to the API, and their output; progress.go: their progress
//   - stream.go: upload and stream
//   - key.go: key and ingest-key
//   - database.go: migrate and maintain
//   - all other files: one subcommand each, named after it
package main

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"runtime/debug"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

// version is set by the linker in a release.
var version string

// currentVersion returns the version of a release, and otherwise the version of the module that Go recorded.
func currentVersion() string {
	built := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		built = cmp.Or(info.Main.Version, built)
	}
	return cmp.Or(version, built)
}

type versionCmd struct{ format }

// Run prints the version.
func (c *versionCmd) Run(t *terminal) error {
	return t.print(c.format, struct {
		Version string `json:"version"`
		Go      string `json:"go"`
	}{currentVersion(), runtime.Version()})
}
