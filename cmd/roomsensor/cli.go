package main

// commandLine is every command and its flags.
type commandLine struct {
	Help helpFlag `help:"Show what a command does and takes." short:"h"`

	API         apiCmd         `cmd:"" help:"Serve the API."                                                       name:"api"`
	Ingest      ingestCmd      `cmd:"" help:"Receive uploads and store them."                                      name:"ingest"`
	Migrate     migrateCmd     `cmd:"" help:"Bring the database to this version, or back."                         name:"migrate"`
	Upload      uploadCmd      `cmd:"" help:"Put JSON Lines of uploads into the stream."                           name:"upload"`
	Rejects     rejectsCmd     `cmd:"" help:"Look at what could not be stored, and try it again."                  name:"rejects"`
	Stream      streamCmd      `cmd:"" help:"Work on the stream of uploads."                                       name:"stream"`
	Maintain    maintainCmd    `cmd:"" help:"Put old readings in the order in which they are read."                name:"maintain"`
	Localdb     localdbCmd     `cmd:"" help:"Run a TimescaleDB on this machine for trials."                        name:"localdb"`
	Team        teamCmd        `cmd:"" help:"Make and list teams."                                                 name:"team"`
	Key         keyCmd         `cmd:"" help:"Make, list and revoke keys of the API."                               name:"key"`
	IngestKey   ingestKeyCmd   `cmd:"" help:"Make, list and revoke credentials that upload."                       name:"ingest-key"`
	Device      deviceCmd      `cmd:"" help:"Make and list devices, and swap the units in them."                   name:"device"`
	Assignment  assignmentCmd  `cmd:"" help:"Start, end and list the blocks in which a device tracked something."  name:"assignment"`
	Simulate    simulateCmd    `cmd:"" help:"Make up the uploads of a fleet of devices, the same for the same seed."    name:"simulate"`
	Demo        demoCmd        `cmd:"" help:"Run all of it in one process, with a team of simulated devices."           name:"demo"`
	Healthcheck healthcheckCmd `cmd:"" help:"Ask a process of this machine whether it is ready."`
	Version     versionCmd     `cmd:"" help:"Show the version."                                                    name:"version"`
}
