package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// If it fails, run go generate ./docs (decision 35 a).
func TestRun(t *testing.T) {
	original := map[string]string{}
	for name := range documents {
		text, err := os.ReadFile("../" + name)
		require.NoError(t, err)
		original[name] = string(text)
	}
	t.Chdir(t.TempDir())
	for name, text := range original {
		old := strings.ReplaceAll(text, "internal_error", "old_name")
		require.NoError(t, os.WriteFile(name, []byte(old), 0o600))
	}
	var stderr strings.Builder
	require.Zero(t, run(&stderr), stderr.String())
	for name, text := range original {
		updated, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, string(updated), text, "%s is out of date: run go generate ./docs", name)
	}
}

func TestRunErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	var stderr strings.Builder
	require.Equal(t, 1, run(&stderr))
	require.Contains(t, stderr.String(), "reading a document")

	_, err := replacePart("no marks", "codes", "")
	require.ErrorContains(t, err, "Begin of codes")
	_, err = replacePart("    # Begin of codes: generated from roomsensor.Codes by go generate ./docs.\n", "codes", "")
	require.ErrorContains(t, err, "End of codes")
}

func TestQuote(t *testing.T) {
	t.Parallel()
	require.Equal(t, `'It is not your request''s fault: "x".'`, quote(`It is not your request's fault: "x".`))
}
