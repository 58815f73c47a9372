package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"roomsensor/internal/config"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // what was asked for could not be done
	exitUsage   = 2 // what was asked for makes no sense as it was written
)

// run carries out one command line and returns the exit code. JSON goes to
// stdout, everything else to stderr. A first SIGINT or SIGTERM ends the command
// in order, a second one at once.
func run(
	ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer,
) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()

	t := &terminal{getenv: getenv, stdin: stdin, stdout: stdout, stderr: config.MaskingWriter(stderr)}
	err := t.carryOut(ctx, args)
	switch {
	case err == nil, errors.Is(err, errHelpShown):
		return exitOK
	case isUsage(err):
		t.complain(err, "Run roomsensor --help, or a command with --help, for what there is.")
		return exitUsage
	}
	t.complain(err)
	return exitFailure
}

// terminal is what a command reads from and writes to.
type terminal struct {
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// complain says what went wrong, as a sentence.
func (t *terminal) complain(err error, more ...string) {
	text := "roomsensor: " + err.Error()
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	_, _ = fmt.Fprintln(t.stderr, strings.Join(append([]string{text}, more...), "\n")) // Nobody is left to tell.
}

func (t *terminal) carryOut(ctx context.Context, args []string) error {
	parser, err := t.parser()
	if err != nil {
		return err
	}
	command, err := parser.Parse(args)
	if err != nil {
		return explained(err)
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return command.Run(t) //nolint:wrapcheck // A command's errors are sentences.
}

func (t *terminal) parser() (*kong.Kong, error) {
	parser, err := kong.New(&commandLine{},
		kong.Name("roomsensor"),
		kong.Description("Stores what room sensors measure and serves it to their teams."),
		kong.NoDefaultHelp(),
		kong.Writers(t.stdout, t.stderr),
		kong.Resolvers(t.environment()),
		kong.ValueFormatter(describe),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		return nil, fmt.Errorf("reading the command line's structure: %w", err)
	}
	return parser, nil
}
