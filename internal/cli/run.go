// Package cli runs the command line of a program: it parses flags and settings, shows help, completes words in shells,
// prints results, asks for confirmations, and returns the exit code. The programs define their commands.
//
//   - run.go: the program and its terminal
//   - output.go: results as tables or JSON, and confirmations
//   - list.go: lists of the API, also as CSV
//   - progress.go: how far a long command is
//   - usage.go: usage errors, environment variables
//   - help.go: help and version; values.go: types of flags
//   - completion.go: the completion of commands and flags in a shell
//   - manual.go: the manual page
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
)

// The exit codes.
const (
	ExitOK      = 0
	ExitFailure = 1 // the command failed
	ExitUsage   = 2 // usage error: an invalid command line or setting
)

// ExitError ends a command that printed its result with a code of its own, such as 3 for a file that is not exact.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Program is one program with its commands.
type Program struct {
	Name        string
	Description string
	Version     string              // set by the linker in a release; without it, what Go recorded of the module
	Commands    func() any          // returns a new struct of commands, with Common as an embedded field
	Examples    map[string][]string // command lines without the name of the program, by command
	Hidden      [][2]string         // pairs of a command and a flag that its help does not show
}

// Common are the flags and commands of every program.
type Common struct {
	Help        helpFlag    `help:"Show the help of a command." short:"h"`
	VersionFlag versionFlag `help:"Show the version and exit."  name:"version"`

	Completion  completionCmd `cmd:"" help:"Print the code that makes a shell complete commands and flags."`
	HelpCommand helpCmd       `cmd:"" help:"Show the help of a command."                                    name:"help"`
	Version     versionCmd    `cmd:"" help:"Show the version."                                              name:"version"`
	Candidates  candidatesCmd `cmd:"" hidden:""                                                             name:"__complete" passthrough:""`
	Manual      manualCmd     `cmd:"" hidden:""                                                             name:"__manual"`
}

// Main runs the command line of the process and returns its exit code.
func (p *Program) Main() int {
	return p.Run(context.Background(), os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
}

// Run runs one command line and returns the exit code. JSON goes to stdout, everything else to stderr. The first SIGINT
// or SIGTERM stops the command gracefully, the second one kills it.
func (p *Program) Run(
	ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer,
) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()

	t := &Terminal{
		Getenv: getenv, Stdin: stdin, Stdout: stdout, Stderr: config.MaskingWriter(stderr),
		Shows: isTerminal(stdout), Asks: isTerminal(stdin) && isTerminal(stderr), Watches: isTerminal(stderr),
		Version: p.currentVersion(), program: p,
	}
	err := t.runCommand(ctx, args)
	exit, ended := errors.AsType[ExitError](err)
	switch {
	case ended:
		return int(exit)
	case err == nil, errors.Is(err, errHelpShown):
		return ExitOK
	case isUsage(err) && t.command != "":
		t.printError(err, fmt.Sprintf("Run '%s %s --help' for usage.", p.Name, t.command))
		return ExitUsage
	case isUsage(err):
		t.printError(err, fmt.Sprintf("Run '%[1]s --help' for usage, or '%[1]s COMMAND --help' for a command.", p.Name))
		return ExitUsage
	}
	t.printError(err)
	return ExitFailure
}

// currentVersion returns the version of a release, and otherwise the version of the module that Go recorded.
func (p *Program) currentVersion() string {
	built := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		built = cmp.Or(info.Main.Version, built)
	}
	return cmp.Or(p.Version, built)
}

// Terminal is the environment of a command: its variables, input and output.
type Terminal struct {
	Getenv         func(string) string
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	Shows   bool // Stdout is a terminal: results are tables
	Asks    bool // Stdin and Stderr are a terminal: a person can answer questions
	Watches bool // Stderr is a terminal: a line of progress can change

	Version string // of the program
	program *Program
	command string // the name of the command that was parsed; empty if none was
}

func (t *Terminal) runCommand(ctx context.Context, args []string) error {
	parser, err := t.program.Parser(t)
	if err != nil {
		return err
	}
	command, err := parser.Parse(args)
	if parse, ok := errors.AsType[*kong.ParseError](err); ok {
		command = parse.Context
	}
	if command != nil && command.Selected() != nil {
		t.command = CommandName(command.Selected())
	}
	if err != nil {
		return usageMessage(err)
	}
	command.BindTo(roomsensor.WithActor(ctx, OperatorOf(user.Current)), (*context.Context)(nil))
	return command.Run() //nolint:wrapcheck // The errors of commands are full sentences.
}

// OperatorOf returns who runs a command, for the audit log: the name of the user in the operating system, or its number
// where it has no name, as in some containers.
func OperatorOf(current func() (*user.User, error)) roomsensor.Actor {
	name := fmt.Sprintf("uid %d", os.Getuid())
	if u, err := current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return roomsensor.Actor{Kind: roomsensor.ActorOperator, Name: name}
}

// Parser returns the parser of command lines. The commands that it parses run on a terminal.
func (p *Program) Parser(t *Terminal) (*kong.Kong, error) {
	parser, err := kong.New(p.Commands(),
		kong.Name(p.Name),
		kong.Description(p.Description),
		kong.NoDefaultHelp(),
		kong.Writers(t.Stdout, t.Stderr),
		kong.Resolvers(t.environment()),
		kong.ValueFormatter(flagHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Help(p.printHelp),
		kong.Bind(t),
	)
	if err != nil {
		return nil, fmt.Errorf("reading the command line definition: %w", err)
	}
	for _, pair := range p.Hidden {
		hideFlag(parser.Model.Node, pair[0], pair[1])
	}
	return parser, nil
}

// printError prints an error and hints, each as a full sentence on its own line.
func (t *Terminal) printError(err error, hints ...string) {
	text := t.program.Name + ": " + err.Error()
	if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "?") {
		text += "."
	}
	_, _ = fmt.Fprintln(t.Stderr, strings.Join(append([]string{text}, hints...), "\n")) // A closed stderr is ignored.
}
