package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/alecthomas/kong"
)

// errHelpShown ends a command line with --help or --version.
var errHelpShown = errors.New("help was shown")

// helpFlag shows the help of the command before it.
type helpFlag bool

// BeforeReset is called by kong once the command is known and before required flags are checked.
func (helpFlag) BeforeReset(command *kong.Context) error {
	if err := command.PrintUsage(false); err != nil {
		return fmt.Errorf("showing help: %w", err)
	}
	return errHelpShown
}

// versionFlag shows the version.
type versionFlag bool

// BeforeReset is called by kong before it requires a command.
func (versionFlag) BeforeReset(command *kong.Context) error {
	_, err := fmt.Fprintf(command.Stdout, "roomsensor %s (%s, %s/%s)\n",
		currentVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return fmt.Errorf("showing the version: %w", err)
	}
	return errHelpShown
}

type helpCmd struct {
	Command []string `arg:"" help:"The command, for example: team create." optional:""`
}

// Run shows the help of a command, as --help after the command does.
func (c *helpCmd) Run(ctx context.Context, t *terminal) error {
	return t.runCommand(ctx, append(slices.Clone(c.Command), "--help"))
}

// printHelp prints the help of a command, and examples.
func printHelp(options kong.HelpOptions, command *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, command); err != nil {
		return fmt.Errorf("printing help: %w", err)
	}
	node := command.Model.Node
	if selected := command.Selected(); selected != nil {
		node = selected
	}
	text := "\nRun \"roomsensor COMMAND --help\" for the flags and examples of a command.\n"
	if lines := examples[commandName(node)]; len(lines) > 0 {
		text = "\nExamples:\n"
		for _, line := range lines {
			text += "  roomsensor " + line + "\n"
		}
	}
	if _, err := fmt.Fprint(command.Stdout, text); err != nil {
		return fmt.Errorf("printing help: %w", err)
	}
	return nil
}

// commandName returns the name of a command with those that it is part of: "team create".
func commandName(node *kong.Node) string {
	if node.Parent == nil {
		return ""
	}
	if parent := commandName(node.Parent); parent != "" {
		return parent + " " + node.Name
	}
	return node.Name
}

// hideFlag leaves a flag out of the help of a command.
func hideFlag(node *kong.Node, command, flag string) {
	for _, child := range node.Children {
		for _, f := range child.Flags {
			if child.Name == command && f.Name == flag {
				f.Hidden = true
			}
		}
	}
}
