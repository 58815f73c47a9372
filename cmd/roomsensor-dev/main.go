// Command roomsensor-dev runs roomsensor on a machine of a developer: the demo, a local TimescaleDB and simulated
// devices, as one subcommand in one file each. It contains what an installation does not need: an embedded NATS, a
// client of Docker and the installer of TimescaleDB.
package main

import (
	"os"

	"roomsensor/internal/cli"
)

func main() { os.Exit(program().Main()) }

// version is set by the linker in a release.
var version string

func program() *cli.Program {
	return &cli.Program{
		Name:        "roomsensor-dev",
		Description: "Runs roomsensor for development and demonstrations.",
		Version:     version,
		Commands:    func() any { return &commands{} },
		Examples:    examples,
	}
}

// commands defines all commands and their flags.
type commands struct {
	Demo     demoCmd     `cmd:"" help:"Run the whole service in one process with simulated devices."`
	Localdb  localdbCmd  `cmd:"" help:"Run TimescaleDB on this machine."`
	Simulate simulateCmd `cmd:"" help:"Generate deterministic uploads for a simulated fleet."`

	Common cli.Common `embed:""`
}

// examples are command lines without the name of the program, by command. A test parses each of them.
var examples = map[string][]string{
	"demo": {"demo", "demo --reset --history 7d", "demo --database-url postgres://postgres@127.0.0.1:5432/demo"},

	"localdb start": {"localdb start"},
	"localdb stop":  {"localdb stop"},
	"localdb url":   {"localdb url", `localdb url --output text`},

	"simulate": {
		"simulate --devices 3 --history 24h >uploads.jsonl",
		"simulate --mode live --to http://127.0.0.1:8081 --ingest-key rsi_...",
		"simulate --mode burst --to nats --rate 100",
	},
}
