package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
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
	key := roomsensor.FormatKey(roomsensor.IngestKey, "a", "b")
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"--devices 2 --history 30m --until 2026-03-05T00:00:00Z", exitOK, "sent 2 uploads"},
		{"--devices 0", exitUsage, "--devices, --first-hardware-id: the number of devices must be"},
		{"--first-hardware-id 12", exitUsage, "is not a hardware id"},
		{"--mode loud", exitUsage, "--mode must be one of"},
		{"--history 1w", exitUsage, "is not a duration"},
		{"--history 9000d", exitUsage, "readings before 2015-01-01T00:00:00Z are not accepted"},
		{"--rate=-1", exitUsage, "--rate must be"},
		{"--rate=NaN", exitUsage, "--rate must be"},
		{"--until yesterday", exitUsage, "is not a UTC time"},
		{"--seed=-1", exitUsage, "--seed"},
		{"--to nowhere", exitUsage, "--to must be"},
		{"--to nats", exitUsage, "--nats-url (NATS_URL) is missing"},
		{"--to http://127.0.0.1:1", exitUsage, "--ingest-key (INGEST_KEY) must be"},
		{"--to http://127.0.0.1:1 --ingest-key " + key[1:], exitUsage, "--ingest-key (INGEST_KEY) must be"},
		{"--to http://127.0.0.1:1 --ingest-key " + key + " --duration 1s", exitFailure, "does not answer"},
	} {
		code, _, stderr := simulated(t, strings.Fields(test.args)...)
		require.Equal(t, test.code, code, "%s: %s", test.args, stderr)
		require.Contains(t, stderr, test.want, test.args)
	}
}
