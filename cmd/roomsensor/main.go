// Command roomsensor runs each process of the service and the operator's commands, as one subcommand each. Each
// subcommand reads its flags into a configuration and calls service or admin. The package cli runs the command line.
// The package clientcmd has the commands get, export, sync, import and probe.
//
//   - main.go: main and the list of the commands; examples.go: the examples in the help
//   - values.go: the types of the operator's flags
//   - serve.go: api, ingest, dashboard, notify, mqtt, probe and healthcheck
//   - stream.go: upload and stream
//   - key.go: key and ingest-key
//   - database.go: migrate and maintain
//   - all other files: one subcommand each, named after it
package main

import (
	"os"

	"roomsensor/internal/cli"
	"roomsensor/internal/clientcmd"
)

func main() { os.Exit(program().Main()) }

// version is set by the linker in a release.
var version string

func program() *cli.Program {
	return &cli.Program{
		Name:        "roomsensor",
		Description: "Stores the measurements of room sensors and serves them to their teams.",
		Version:     version,
		Commands:    func() any { return &commands{} },
		Examples:    examples,
		// Only the default of --public-url depends on it there.
		Hidden: [][2]string{{"ingest", "api-addr"}, {"dashboard", "api-addr"}},
	}
}

// commands defines all commands and their flags.
type commands struct {
	API         apiCmd           `cmd:"" help:"Serve the API."                                               name:"api"`
	Ingest      ingestCmd        `cmd:"" help:"Receive uploads and store them."                              name:"ingest"`
	Dashboard   dashboardCmd     `cmd:"" help:"Serve the dashboard, the pages for people."`
	Notify      notifyCmd        `cmd:"" help:"Evaluate alerts, and send mails about them."`
	MQTT        mqttCmd          `cmd:"" help:"Pass messages of an MQTT broker to sources."                          name:"mqtt"`
	Migrate     migrateCmd       `cmd:"" help:"Migrate the database to this version."                         name:"migrate"`
	Upload      uploadCmd        `cmd:"" help:"Publish uploads from JSON Lines to the stream."               name:"upload"`
	Rejects     rejectsCmd       `cmd:"" help:"List, show and replay uploads that could not be stored."      name:"rejects"`
	Stream      streamCmd        `cmd:"" help:"Manage the stream of uploads."                                name:"stream"`
	Restore     restoreCmd       `cmd:"" help:"Check a restored database."`
	Maintain    maintainCmd      `cmd:"" help:"Rewrite old chunks in primary-key order (CLUSTER)."           name:"maintain"`
	Team        teamCmd          `cmd:"" help:"Manage teams."                                                name:"team"`
	User        userCmd          `cmd:"" help:"Manage people who sign in to the dashboard."`
	Key         keyCmd           `cmd:"" help:"Manage API keys."                                             name:"key"`
	IngestKey   ingestKeyCmd     `cmd:"" help:"Manage keys for uploads to the receiver."                     name:"ingest-key"`
	Source      sourceCmd        `cmd:"" help:"Manage sources, to which devices and platforms post in their own formats."`
	Device      deviceCmd        `cmd:"" help:"Manage devices and the units in them."                        name:"device"`
	Assignment  assignmentCmd    `cmd:"" help:"Manage device assignments."                                   name:"assignment"`
	Reading     readingCmd       `cmd:"" help:"Delete wrong readings, and archive old ones."`
	Person      personCmd        `cmd:"" help:"Answer requests of people whom assignments name."`
	Audit       auditCmd         `cmd:"" help:"Show who changed what."                                       name:"audit"`
	Get         clientcmd.Get    `cmd:"" help:"Read devices and readings through the API."                   name:"get"`
	Export      clientcmd.Export `cmd:"" help:"Export readings of any period into files, through the API."   name:"export"`
	Sync        clientcmd.Sync   `cmd:"" help:"Keep a complete local copy of all readings, through the API." name:"sync"`
	Import      clientcmd.Import `cmd:"" help:"Send CSV files with old readings to the receiver."            name:"import"`
	Probe       probeCmd         `cmd:"" help:"Check from outside that uploads become readable, once or all the time."`
	Doctor      doctorCmd        `cmd:"" help:"Check settings and state of an installation, and say what to do."`
	Support     supportBundleCmd `cmd:"" help:"Write a file with settings, state and metrics with which others can look for a fault, without secrets." name:"support-bundle"`
	Healthcheck healthcheckCmd   `cmd:"" help:"Check whether a process on this machine is ready."`

	Common cli.Common `embed:""`
}
