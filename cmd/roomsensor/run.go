package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // the command failed
	exitUsage   = 2 // usage error: an invalid command line or setting
)

// commandLine defines all commands and their flags.
type commandLine struct {
	Help        helpFlag    `help:"Show the help of a command."         short:"h"`
	VersionFlag versionFlag `help:"Show the version and exit."          name:"version"`

	API         apiCmd         `cmd:"" help:"Serve the API."                                               name:"api"`
	Ingest      ingestCmd      `cmd:"" help:"Receive uploads and store them."                              name:"ingest"`
	Dashboard   dashboardCmd   `cmd:"" help:"Serve the dashboard, the pages for people."`
	Migrate     migrateCmd     `cmd:"" help:"Migrate the database to this version, or revert a migration." name:"migrate"`
	Upload      uploadCmd      `cmd:"" help:"Publish uploads from JSON Lines to the stream."               name:"upload"`
	Rejects     rejectsCmd     `cmd:"" help:"List, show and replay uploads that could not be stored."      name:"rejects"`
	Stream      streamCmd      `cmd:"" help:"Manage the stream of uploads."                                name:"stream"`
	Maintain    maintainCmd    `cmd:"" help:"Rewrite old chunks in primary-key order (CLUSTER)."           name:"maintain"`
	Localdb     localdbCmd     `cmd:"" help:"Run TimescaleDB on this machine for development."             name:"localdb"`
	Team        teamCmd        `cmd:"" help:"Manage teams."                                                name:"team"`
	User        userCmd        `cmd:"" help:"Manage people who sign in to the dashboard."`
	Key         keyCmd         `cmd:"" help:"Manage API keys."                                             name:"key"`
	IngestKey   ingestKeyCmd   `cmd:"" help:"Manage keys for uploads to the receiver."                     name:"ingest-key"`
	Device      deviceCmd      `cmd:"" help:"Manage devices and the units in them."                        name:"device"`
	Assignment  assignmentCmd  `cmd:"" help:"Manage device assignments."                                   name:"assignment"`
	Person      personCmd      `cmd:"" help:"Answer requests of people whom assignments name."`
	Audit       auditCmd       `cmd:"" help:"Show who changed what."                                       name:"audit"`
	Get         getCmd         `cmd:"" help:"Read devices and readings through the API."                   name:"get"`
	Export      exportCmd      `cmd:"" help:"Export readings of any period into files, through the API."   name:"export"`
	Sync        syncCmd        `cmd:"" help:"Keep a complete local copy of all readings, through the API." name:"sync"`
	Simulate    simulateCmd    `cmd:"" help:"Generate deterministic uploads for a simulated fleet."        name:"simulate"`
	Demo        demoCmd        `cmd:"" help:"Run the whole service in one process with simulated devices." name:"demo"`
	Doctor      doctorCmd      `cmd:"" help:"Check settings and state of an installation, and say what to do."`
	Healthcheck healthcheckCmd `cmd:"" help:"Check whether a process on this machine is ready."`
	Completion  completionCmd  `cmd:"" help:"Print the code that makes a shell complete commands and flags."`
	HelpCommand helpCmd        `cmd:"" help:"Show the help of a command."                                  name:"help"`
	Version     versionCmd     `cmd:"" help:"Show the version."                                            name:"version"`
	Candidates  candidatesCmd  `cmd:"" hidden:""                                                           name:"__complete" passthrough:""`
}

// run runs one command line and returns the exit code. JSON goes to stdout, everything else to stderr. The first SIGINT
// or SIGTERM stops the command gracefully, the second one kills it.
func run(
	ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer,
) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()

	t := &terminal{
		getenv: getenv, stdin: stdin, stdout: stdout, stderr: config.MaskingWriter(stderr),
		shows: isTerminal(stdout), asks: isTerminal(stdin) && isTerminal(stderr), watches: isTerminal(stderr),
	}
	err := t.runCommand(ctx, args)
	switch {
	case err == nil, errors.Is(err, errHelpShown):
		return exitOK
	case isUsage(err):
		t.printError(err, "Run 'roomsensor --help' for usage, or 'roomsensor COMMAND --help' for a command.")
		return exitUsage
	}
	t.printError(err)
	return exitFailure
}

// terminal is the environment of a command: its variables, input and output.
type terminal struct {
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer

	shows   bool // stdout is a terminal: results are tables
	asks    bool // stdin and stderr are a terminal: a person can answer questions
	watches bool // stderr is a terminal: a line of progress can change
}

func (t *terminal) runCommand(ctx context.Context, args []string) error {
	parser, err := t.parser()
	if err != nil {
		return err
	}
	command, err := parser.Parse(args)
	if err != nil {
		return usageMessage(err)
	}
	command.BindTo(roomsensor.WithActor(ctx, operatorOf(user.Current)), (*context.Context)(nil))
	return command.Run(t) //nolint:wrapcheck // The errors of commands are full sentences.
}

// operatorOf returns who runs a command, for the audit log: the name of the user in the operating system, or its number
// where it has no name, as in some containers.
func operatorOf(current func() (*user.User, error)) roomsensor.Actor {
	name := fmt.Sprintf("uid %d", os.Getuid())
	if u, err := current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return roomsensor.Actor{Kind: roomsensor.ActorOperator, Name: name}
}

func (t *terminal) parser() (*kong.Kong, error) {
	parser, err := kong.New(&commandLine{},
		kong.Name("roomsensor"),
		kong.Description("Stores the measurements of room sensors and serves them to their teams."),
		kong.NoDefaultHelp(),
		kong.Writers(t.stdout, t.stderr),
		kong.Resolvers(t.environment()),
		kong.ValueFormatter(flagHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Help(printHelp),
	)
	if err != nil {
		return nil, fmt.Errorf("reading the command line definition: %w", err)
	}
	for _, command := range []string{"ingest", "dashboard"} {
		hideFlag(parser.Model.Node, command, "api-addr") // Only the default of --public-url depends on it there.
	}
	return parser, nil
}

// printError prints an error and hints, each as a full sentence on its own line.
func (t *terminal) printError(err error, hints ...string) {
	text := "roomsensor: " + err.Error()
	if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "?") {
		text += "."
	}
	_, _ = fmt.Fprintln(t.stderr, strings.Join(append([]string{text}, hints...), "\n")) // A closed stderr is ignored.
}
