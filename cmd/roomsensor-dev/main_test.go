package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/internal/cli"
	"roomsensor/test/clitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is the exit code and output of a command line.
type result struct {
	code     int
	out, err string
}

// execute runs a command line with its own environment variables.
func execute(t *testing.T, environment map[string]string, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	getenv := func(name string) string { return environment[name] }
	code := program().Run(t.Context(), args, getenv, strings.NewReader(""), &out, &err)
	return result{code, out.String(), err.String()}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	clitest.CheckHelp(t, program(), map[string]string{})
}

func TestLocaldbNotRunning(t *testing.T) {
	t.Parallel()
	env := map[string]string{"DATA_DIR": filepath.Join(t.TempDir(), "none")}
	r := execute(t, env, "localdb", "url")
	require.Equal(t, cli.ExitFailure, r.code)
	require.Contains(t, r.err, "roomsensor-dev localdb start")
	require.Empty(t, r.out)

	r = execute(t, env, "localdb", "stop")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.Equal(t, "{\"database_url\":null}\n", r.out)
}
