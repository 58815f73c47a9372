// Package clitest checks the commands of a program.
package clitest

import (
	"bytes"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
)

// Parse parses a command line as the program does, and adds the variables that it reads to read.
func Parse(t *testing.T, p *cli.Program, args []string, environment map[string]string, read map[string]bool) {
	t.Helper()
	_, err := parser(t, p, func(variable string) string {
		read[variable] = true
		return environment[variable]
	}).Parse(args)
	require.NoError(t, err, "%v", args)
}

func parser(t *testing.T, p *cli.Program, getenv func(string) string) *kong.Kong {
	t.Helper()
	parser, err := p.Parser(&cli.Terminal{Stdout: io.Discard, Stderr: io.Discard, Getenv: getenv})
	require.NoError(t, err)
	return parser
}

// CheckHelp checks the help of all commands that a person can run. Each command has examples, and each example is a
// valid command line. Each flag that takes a value says what kind of value that is, and what happens without it.
func CheckHelp(t *testing.T, p *cli.Program, environment map[string]string) {
	t.Helper()
	commands := parser(t, p, func(string) string { return "" }).Model.Leaves(true)
	for _, node := range commands {
		checkFlags(t, node)
		checkExamples(t, p, cli.CommandName(node), environment)
	}
	for name := range p.Examples {
		known := slices.ContainsFunc(commands, func(node *kong.Node) bool { return cli.CommandName(node) == name })
		require.True(t, known, "there are examples of %q", name)
	}
}

var placeholder = regexp.MustCompile(
	`^[A-Z][A-Z_]*(,\.\.\.)?$|^HOST:PORT$|^(KEY|NAME)=VALUE(,\.\.\.)?$|^FROM-TO$|` +
		`^METRIC=(LOW\.\.HIGH|COLUMN)$|^FILTER=SOURCE_ID$|^dev:N$`)

// withoutDefault are settings that a person has to give.
var withoutDefault = []string{
	"database-url", "nats-url", "mqtt-url", "ingest-key", "roomsensor-url", "roomsensor-api-key",
}

func checkFlags(t *testing.T, node *kong.Node) {
	t.Helper()
	for _, flag := range node.Flags {
		if flag.IsBool() {
			continue
		}
		require.Regexp(t, placeholder, flag.Tag.PlaceHolder, "%s --%s", cli.CommandName(node), flag.Name)
		stated := flag.Required || flag.HasDefault || flag.Tag.Has(cli.ImpliedTag) || flag.IsCumulative() ||
			slices.Contains(withoutDefault, flag.Name)
		require.True(t, stated, "%s --%s", cli.CommandName(node), flag.Name)
	}
}

func checkExamples(t *testing.T, p *cli.Program, command string, environment map[string]string) {
	t.Helper()
	var out, errs bytes.Buffer
	getenv := func(string) string { return "" }
	code := p.Run(t.Context(), append(strings.Fields(command), "--help"), getenv, strings.NewReader(""), &out, &errs)
	require.Equal(t, cli.ExitOK, code, errs.String())
	_, text, found := strings.Cut(out.String(), "\nExamples:\n")
	require.True(t, found, "%s has no examples", command)
	for line := range strings.Lines(text) {
		line, ours := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "  "+p.Name+" ")
		require.True(t, ours && strings.HasPrefix(line, command), line)
		words, _, _ := strings.Cut(strings.NewReplacer("<", ">", "|", ">").Replace(line), ">") // The rest is the shell's.
		//nolint:gosec // The examples of the program.
		split, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\0' `+words).Output()
		require.NoError(t, err, line)
		Parse(t, p, strings.Split(strings.TrimSuffix(string(split), "\x00"), "\x00"), environment, map[string]bool{})
	}
}
