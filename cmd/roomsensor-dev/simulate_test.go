package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
	"roomsensor/internal/roomsensor"
)

func TestSimulateExitCodes(t *testing.T) {
	t.Parallel()
	key := roomsensor.FormatKey(roomsensor.IngestKey, "a", "b")
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"--devices 2 --history 30m --until 2026-03-05T00:00:00Z", cli.ExitOK, "sent 2 uploads"},
		{"--devices 0", cli.ExitUsage, "--devices, --first-hardware-id: the number of devices must be"},
		{"--first-hardware-id 12", cli.ExitUsage, "is not a hardware id"},
		{"--mode loud", cli.ExitUsage, "--mode must be one of"},
		{"--history 1w", cli.ExitUsage, "is not a duration"},
		{"--history 9000d", cli.ExitUsage, "readings before 2015-01-01T00:00:00Z are not accepted"},
		{"--rate=-1", cli.ExitUsage, "--rate must be"},
		{"--rate=NaN", cli.ExitUsage, "--rate must be"},
		{"--until yesterday", cli.ExitUsage, "is not a UTC time"},
		{"--seed=-1", cli.ExitUsage, "--seed"},
		{"--to nowhere", cli.ExitUsage, "--to must be"},
		{"--to nats", cli.ExitUsage, "--nats-url (NATS_URL) is missing"},
		{"--to http://127.0.0.1:1", cli.ExitUsage, "--ingest-key (INGEST_KEY) must be"},
		{"--to http://127.0.0.1:1 --ingest-key " + key[1:], cli.ExitUsage, "--ingest-key (INGEST_KEY) must be"},
		{"--to http://127.0.0.1:1 --ingest-key " + key + " --duration 1s", cli.ExitFailure, "connection refused"},
	} {
		r := execute(t, nil, append([]string{"simulate"}, strings.Fields(test.args)...)...)
		require.Equal(t, test.code, r.code, "%s: %s", test.args, r.err)
		require.Contains(t, r.err, test.want, test.args)
	}
}
