package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
)

func TestCompletion(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"te":                         "team",
		"team ":                      "create list show set set-retention rename delete",
		"team r":                     "rename",
		"ingest-key ro":              "rotate",
		"completion ":                "bash zsh fish",
		"completion f":               "fish",
		"key create --scope ":        "read read_write",
		"key create --scope = read_": "read_write",
		"key create --scope =":       "read read_write",
		"key create --scope=read_":   "--scope=read_write",
		"key create --label=":        "",
		"team list --nonsense=":      "",
		"key create --team x --exp":  "--expires-at",
		"key create --team --scope":  "", // It is the value of --team.
		"stream status --stream-":    "--stream-keep",
		"ingest --api-a":             "", // Hidden.
		"device delete --yes --yes":  "--yes",
		"team list --output t":       "table text",
		"help team d":                "delete",
		"nonsense --out":             "",
		"__":                         "",
	} {
		fields := strings.Split(words, " ")
		r := execute(t, nil, nil, append([]string{"__complete"}, fields...)...)
		require.Equal(t, cli.ExitOK, r.code, r.err)
		require.Equal(t, strings.Fields(want), strings.Fields(r.out), words)
	}
	require.Contains(t, strings.Fields(execute(t, nil, nil, "__complete").out), "team")
}

// The code for bash completes a command line in bash. The other shells are not on every machine.
func TestCompletionBash(t *testing.T) {
	t.Parallel()
	r := execute(t, nil, nil, "completion", "bash")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	dir := t.TempDir()
	// In place of the program: it prints the words that it gets.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "roomsensor"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"), 0o700))
	script := r.out + `
complete -p roomsensor
COMP_WORDS=(roomsensor key create --label "a b" --sc) COMP_CWORD=5
_roomsensor
printf '[%s]' "${COMPREPLY[@]}"`
	shell := exec.CommandContext(t.Context(), "bash", "-c", script)
	shell.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	out, err := shell.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "complete -o default -F _roomsensor roomsensor\n[__complete][key][create][--label][a b][--sc]", string(out))
}
