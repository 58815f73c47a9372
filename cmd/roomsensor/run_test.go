package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHelpGoesToStdout(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--help"}, {"-h"}, {"team", "--help"}, {"key", "create", "--help"}, {"api", "--help"}, {"rejects", "replay", "-h"},
	} {
		r := execute(t, nil, nil, args...)
		require.Equal(t, exitOK, r.code, args)
		require.Contains(t, r.out, "Usage: roomsensor")
		require.Empty(t, r.err)
	}
	help := execute(t, nil, nil, "api", "--help").out
	for _, variable := range []string{"DATABASE_URL", "API_ADDR", "OPS_ADDR", "PUBLIC_URL", "DOCS_URL", "LOG_LEVEL"} {
		require.Contains(t, help, "$"+variable)
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	environment := map[string]string{
		"DATABASE_URL": "postgres://user:secret@127.0.0.1:1/x", "NATS_URL": "nats://user:secret@127.0.0.1:1",
	}
	tests := []struct {
		says string
		env  map[string]string
		args []string
	}{
		{says: "expected one of"},
		{says: "expected one of", args: []string{"team"}},
		{says: "unexpected argument", args: []string{"teams"}},
		{says: "unknown flag --nam", args: []string{"team", "create", "--nam", "x"}},
		{says: "--database-url (DATABASE_URL) is missing", env: map[string]string{"DATABASE_URL": ""}, args: []string{"team", "list"}},
		{says: "--database-url (DATABASE_URL) is not a URL of a PostgreSQL database", args: []string{"team", "list", "--database-url", "mysql://user:secret@db/x"}},
		{says: "--database-url (DATABASE_URL) is not a URL of a PostgreSQL database", args: []string{"team", "list", "--database-url", "postgres://user:secret@db/x?sslmode=perhaps"}},
		{says: "--database-url (DATABASE_URL) is not a URL", env: map[string]string{"DATABASE_URL": "user:secret"}, args: []string{"migrate", "up"}},
		{says: "--database-url (DATABASE_URL)", env: map[string]string{"DATABASE_URL": ""}, args: []string{"api"}},
		{says: "--api-addr (API_ADDR) is not an address", env: map[string]string{"API_ADDR": "80"}, args: []string{"api"}},
		{says: "--ops-addr (OPS_ADDR) is not an address", args: []string{"api", "--ops-addr", "localhost"}},
		{says: "--public-url (PUBLIC_URL) must not end in /v1", env: map[string]string{"PUBLIC_URL": "https://a.example/v1"}, args: []string{"api"}},
		{says: "--docs-url (DOCS_URL)", args: []string{"api", "--docs-url", "docs"}},
		{says: "--log-level (LOG_LEVEL) must be one of", env: map[string]string{"LOG_LEVEL": "loud"}, args: []string{"api"}},
		{says: "--nats-url (NATS_URL) is missing", env: map[string]string{"NATS_URL": ""}, args: []string{"ingest"}},
		{says: "--nats-url (NATS_URL) is not a URL of NATS", args: []string{"upload", "--nats-url", "http://user:secret@queue"}},
		{says: "--ingest-addr (INGEST_ADDR) is not an address", env: map[string]string{"INGEST_ADDR": "x:y"}, args: []string{"ingest"}},
		{says: "--no-worker (NO_WORKER)", env: map[string]string{"NO_WORKER": "true"}, args: []string{"ingest", "--no-receiver"}},
		{says: "--no-worker (NO_WORKER)", env: map[string]string{"NO_WORKER": "perhaps"}, args: []string{"ingest"}},
		{says: "--stream-replicas (STREAM_REPLICAS)", env: map[string]string{"STREAM_REPLICAS": "x"}, args: []string{"ingest"}},
		{says: "--stream-replicas (STREAM_REPLICAS) must be 1, 3 or 5", args: []string{"upload", "--stream-replicas", "2"}},
		{says: "--stream-max-bytes (STREAM_MAX_BYTES)", args: []string{"stream", "replay", "--stream-max-bytes", "8GB"}},
		{says: "--stream-keep (STREAM_KEEP)", env: map[string]string{"STREAM_KEEP": "7"}, args: []string{"ingest"}},
		{says: "--since", args: []string{"stream", "replay", "--since", "yesterday"}},
		{says: "--limit must be a whole number from 1 to 100000", args: []string{"rejects", "list", "--limit", "0"}},
		{says: "--limit must be a whole number from 1 to 100000", args: []string{"rejects", "list", "--limit", "100001"}},
		{says: "--limit", args: []string{"rejects", "list", "--limit", "many"}},
		{says: "is not a reason. The reasons are not_parsable,", args: []string{"rejects", "list", "--reason", "bad"}},
		{says: "is not an id", args: []string{"rejects", "list", "--team", "x"}},
		{says: "is not a hardware id", args: []string{"rejects", "list", "--hardware-id", "x"}},
		{says: "is not a UTC time", args: []string{"rejects", "list", "--since", "2026-01-01"}},
		{says: "is not an id", args: []string{"rejects", "show", "x"}},
		{says: "is not an id", args: []string{"rejects", "replay", unknown, "x"}},
		{says: "Say which rejects", args: []string{"rejects", "replay"}},
		{says: "is not a reason", args: []string{"rejects", "replay", "--reason", "bad"}},
	}
	for _, test := range tests {
		env := maps.Clone(environment)
		maps.Copy(env, test.env)
		r := execute(t, env, nil, test.args...)
		require.Equal(t, exitUsage, r.code, "%v: %s", test.args, r.err)
		require.Contains(t, r.err, test.says, "%v", test.args)
		require.NotContains(t, r.err, "secret", "%v", test.args)
		require.Empty(t, r.out, "%v", test.args)
	}
}

// Nothing listens on port 1.
func TestServersThatAreAwayFailTheCommand(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"DATABASE_URL": "postgres://user:secret@127.0.0.1:1/x", "NATS_URL": "nats://user:secret@127.0.0.1:1",
	}
	for _, args := range [][]string{
		{"team", "list"}, {"migrate", "up"}, {"migrate", "down"}, {"migrate", "status"}, {"rejects", "show", unknown},
	} {
		r := execute(t, env, nil, args...)
		require.Equal(t, exitFailure, r.code, "%v: %s", args, r.err)
		require.Contains(t, r.err, "Check that it runs and that --database-url (DATABASE_URL) is right", args)
		require.NotContains(t, r.err, "secret", args)
	}
	for _, args := range [][]string{{"stream", "replay"}, {"upload"}} {
		r := execute(t, env, strings.NewReader(""), args...)
		require.Equal(t, exitFailure, r.code, "%v: %s", args, r.err)
		require.Contains(t, r.err, "--nats-url (NATS_URL) is right", args)
		require.NotContains(t, r.err, "secret", args)
	}
}

func TestFlagWinsOverTheEnvironment(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	url := o.environment["DATABASE_URL"]
	env := map[string]string{"DATABASE_URL": "postgres://127.0.0.1:1/x"}
	require.Equal(t, exitOK, execute(t, env, nil, "team", "list", "--database-url", url).code)
	require.Equal(t, exitFailure, execute(t, env, nil, "team", "list").code)
}

func TestAnInterruptEndsACommand(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, stderr bytes.Buffer
	code := run(ctx, []string{"team", "list"}, func(name string) string { return o.environment[name] }, nil, &out, &stderr)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr.String(), "Interrupted.")
}

// brokenPipe is a reader that went away.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestAnOutputThatCannotBeWrittenIsAFailure(t *testing.T) {
	t.Parallel()
	code := run(t.Context(), []string{"version"}, func(string) string { return "" }, nil, brokenPipe{}, io.Discard)
	require.Equal(t, exitFailure, code)
}

func TestVersion(t *testing.T) {
	t.Parallel()
	r := execute(t, nil, nil, "version")
	require.Equal(t, exitOK, r.code)
	require.Regexp(t, `^\{"version":"[^"]+","go":"go1\.[^"]+"\}\n$`, r.out)
}
