package main

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
	"roomsensor/internal/config"
)

var update = flag.Bool("update", false, "rewrite the other settings in the files of deploy/systemd/settings")

// otherSettings divides a file of settings: what follows is written by TestSystemdSettings.
const otherSettings = "\n# All other settings of this process, with their defaults. Remove the # before one that you change.\n"

// The file of each process explains its settings: first those that an installation must change, then all others, from the
// help of its command.
func TestSystemdSettings(t *testing.T) {
	t.Parallel()
	// Receiver and worker are parts of one command.
	others := map[string]*regexp.Regexp{
		"receiver": regexp.MustCompile("^(no|stream|rejects|park|maintain)-"),
		"worker":   regexp.MustCompile("^(no|upload|ingest|public|docs)-"),
	}
	set := regexp.MustCompile(`(?m)^[A-Z_]+=`)
	common := set.FindAllString(string(readFile(t, systemd+"settings/settings.env")), -1)
	for process, command := range map[string]string{
		"api": "api", "dashboard": "dashboard", "migrate": "migrate up", "mqtt": "mqtt", "notify": "notify",
		"receiver": "ingest", "worker": "ingest",
	} {
		path := systemd + "settings/" + process + ".env"
		file := string(readFile(t, path))
		own, _, _ := strings.Cut(file, otherSettings)
		require.Regexp(t, "^# .*\n[A-Z_]+=", own, "the first line explains the second")
		given := slices.Concat(common, set.FindAllString(own, -1))
		want := own + otherSettings
		for _, f := range settingsOf(t, command) {
			assignment := config.Variable(f.Name) + "="
			if !slices.Contains(given, assignment) && (others[process] == nil || !others[process].MatchString(f.Name)) {
				want += "\n" + comment(f) + "#" + assignment + defaultOf(t, process, f) + "\n"
			}
		}
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
			continue
		}
		require.Equal(t, want, file, "run go test ./cmd/roomsensor -run TestSystemdSettings -update")
	}
}

// settingsOf returns the flags of a command that a variable sets too.
func settingsOf(t *testing.T, command string) (settings []*kong.Flag) {
	t.Helper()
	parser, err := program().Parser(&cli.Terminal{})
	require.NoError(t, err)
	for _, node := range parser.Model.Leaves(true) {
		if cli.CommandName(node) != command {
			continue
		}
		for _, f := range slices.Concat(node.AllFlags(true)...) {
			if f.Tag.Has("setting") {
				settings = append(settings, f)
			}
		}
	}
	require.NotEmpty(t, settings)
	return settings
}

// defaultOf returns the value of a setting without a line in the files.
func defaultOf(t *testing.T, process string, f *kong.Flag) string {
	t.Helper()
	for _, pair := range values(readFile(t, systemd+"system/roomsensor-"+process+".service"), "Environment") {
		if value, found := strings.CutPrefix(pair, config.Variable(f.Name)+"="); found {
			return value
		}
	}
	if f.IsBool() {
		return "false"
	}
	return f.Default
}

// comment returns the help of a flag as lines of a comment.
func comment(f *kong.Flag) string {
	text, line := "", "#"
	help := f.Help
	if implied := f.Tag.Get(cli.ImpliedTag); implied != "" {
		help = strings.TrimSuffix(help, ".") + " (default: " + implied + ")."
	}
	for word := range strings.FieldsSeq(help) {
		if len(line)+1+len(word) > 100 {
			text, line = text+line+"\n", "#"
		}
		line += " " + word
	}
	return text + line + "\n"
}
