package cli

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
func (versionFlag) BeforeReset(t *Terminal) error {
	_, err := fmt.Fprintf(t.Stdout, "%s %s (%s, %s/%s)\n",
		t.program.Name, t.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return fmt.Errorf("showing the version: %w", err)
	}
	return errHelpShown
}

type versionCmd struct{ Format }

// Run prints the version.
func (c *versionCmd) Run(t *Terminal) error {
	return t.Print(c.Format, struct {
		Version string `json:"version"`
		Go      string `json:"go"`
	}{t.Version, runtime.Version()})
}

type helpCmd struct {
	Command []string `arg:"" help:"The command, for example: team create." optional:""`
}

// Run shows the help of a command, as --help after the command does.
func (c *helpCmd) Run(ctx context.Context, t *Terminal) error {
	return t.runCommand(ctx, append(slices.Clone(c.Command), "--help"))
}

// printHelp prints the help of a command, and examples.
func (p *Program) printHelp(options kong.HelpOptions, command *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, command); err != nil {
		return fmt.Errorf("printing help: %w", err)
	}
	node := command.Model.Node
	if selected := command.Selected(); selected != nil {
		node = selected
	}
	text := fmt.Sprintf("\nRun \"%s COMMAND --help\" for the flags and examples of a command.\n", p.Name)
	if lines := p.examples(CommandName(node)); len(lines) > 0 {
		text = "\nExamples:\n"
		for _, line := range lines {
			text += "  " + p.Name + " " + line + "\n"
		}
	}
	if _, err := fmt.Fprint(command.Stdout, text); err != nil {
		return fmt.Errorf("printing help: %w", err)
	}
	return nil
}

// examples returns the examples of a command, without the name of the program.
func (p *Program) examples(command string) []string {
	switch command {
	case "completion":
		return []string{"completion bash", "completion zsh", "completion fish"}
	case "help":
		return []string{"help", "help completion"}
	case "version":
		return []string{"version", "version --output json"}
	}
	return p.Examples[command]
}

// CommandName returns the name of a command with those that it is part of: "team create". A default command has the
// name of the one that it is part of.
func CommandName(node *kong.Node) string {
	if node.Parent == nil {
		return ""
	}
	if node.Parent.DefaultCmd == node {
		return CommandName(node.Parent)
	}
	if parent := CommandName(node.Parent); parent != "" {
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
