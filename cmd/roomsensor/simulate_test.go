package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// simulated runs the command with an empty environment.
func simulated(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"simulate"}, args...), func(string) string { return "" },
		strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestSimulateExitCodes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"--devices 2 --history 30m", exitOK, "sent 2 uploads"},
		{"--devices 0", exitUsage, "--devices, --first-hardware-id: the number of devices must be"},
		{"--devices 2 --first-hardware-id dev:99999999999999999999", exitUsage, "start lower"},
		{"--first-hardware-id 12", exitUsage, "is not a hardware id"},
		{"--mode loud", exitUsage, "--mode must be one of"},
		{"--history 1w", exitUsage, "is not a duration"},
		{"--history 0d", exitUsage, "is not a duration"},
		{"--history +1d", exitUsage, "is not a duration"},
		{"--history 99999999d", exitUsage, "is not a duration"},
		{"--history 9000d", exitUsage, "readings before 2015-01-01T00:00:00Z are not accepted"},
		{"--rate=-1", exitUsage, "--rate must be"},
		{"--rate=NaN", exitUsage, "--rate must be"},
		{"--until yesterday", exitUsage, "is not a UTC time"},
		{"--seed=-1", exitUsage, "--seed"},
		{"--to nowhere", exitUsage, "--to must be"},
		{"--to nats", exitUsage, "--nats-url (NATS_URL) is missing"},
		{"--to http://127.0.0.1:1", exitUsage, "--ingest-key (INGEST_KEY) must be"},
		{"--to http://127.0.0.1:1 --ingest-key rsi_a_b --duration 1s", exitFailure, "does not answer"},
	} {
		code, _, stderr := simulated(t, strings.Fields(test.args)...)
		require.Equal(t, test.code, code, "%s: %s", test.args, stderr)
		require.Contains(t, stderr, test.want, test.args)
	}
}

func TestSimulateIsDeterministic(t *testing.T) {
	t.Parallel()
	args := []string{"--devices", "3", "--history", "2d", "--seed", "9", "--until", "2026-05-04T10:00:00Z"}
	_, first, progress := simulated(t, args...)
	_, again, _ := simulated(t, args...)
	require.Equal(t, first, again)
	require.Equal(t, 6, strings.Count(first, "\n"))
	require.Contains(t, progress, "backfill of 3 devices up to 2026-05-04T10:00:00Z, seed 9")
}

func TestSimulateLiveHasNoHistory(t *testing.T) {
	t.Parallel()
	code, out, _ := simulated(t, "--mode", "live", "--devices", "2", "--rate", "20", "--duration", "1s")
	require.Equal(t, exitOK, code)
	for line := range strings.Lines(out) {
		require.Equal(t, 1, strings.Count(line, "measured_at"), line)
	}
	require.NotEmpty(t, out)
}
