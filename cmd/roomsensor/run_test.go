package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/clitest"
)

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--help"}, {"-h"}, {"team", "--help"}, {"key", "create", "--help"}, {"api", "--help"}, {"rejects", "replay", "-h"},
	} {
		r := execute(t, nil, nil, args...)
		require.Equal(t, cli.ExitOK, r.code, args)
		require.Contains(t, r.out, "Usage: roomsensor")
		require.Empty(t, r.err)
	}
	require.Equal(t, execute(t, nil, nil, "key", "create", "--help").out, execute(t, nil, nil, "help", "key", "create").out)
	require.Equal(t, execute(t, nil, nil, "--help").out, execute(t, nil, nil, "help").out)
	help := execute(t, nil, nil, "api", "--help").out
	for _, variable := range []string{"DATABASE_URL", "API_ADDR", "OPS_ADDR", "PUBLIC_URL", "DOCS_URL", "LOG_LEVEL"} {
		require.Contains(t, help, "$"+variable)
	}
	require.NotContains(t, execute(t, nil, nil, "ingest", "--help").out, "--api-addr", "the receiver does not listen there")
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	_, key, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	_, ingestKey, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	clitest.CheckHelp(t, program(), map[string]string{
		"DATABASE_URL": "postgres://127.0.0.1:1/x", "NATS_URL": "nats://127.0.0.1:1", "MQTT_URL": "mqtt://127.0.0.1:1",
		"ROOMSENSOR_URL": "http://127.0.0.1:1", "ROOMSENSOR_API_KEY": key, "INGEST_KEY": ingestKey,
	})
}

// The manual page has every command with its examples, and every flag. Text is never a request of man(7).
func TestManual(t *testing.T) {
	t.Parallel()
	page := execute(t, nil, nil, "__manual").out
	plain := strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\(ti`, "~", `\(ha`, "^", `\e`, `\`).Replace(page)
	for command, lines := range examples {
		require.Contains(t, plain, "\n.SS \"roomsensor "+command+" ")
		for _, line := range lines {
			require.Contains(t, plain, "\n  roomsensor "+line+"\n")
		}
	}
	require.Contains(t, plain, "\n.B \"--database-url=URL\"\nURL of the TimescaleDB database")
	require.NotContains(t, plain, "--api-addr=HOST:PORT\nAddress of the API on this machine", "it is hidden")
	require.NotContains(t, plain, "__")
	require.Empty(t, regexp.MustCompile(`(?m)^'.*|^\.([^A-Znaf]|$).*`).FindAllString(page, -1))
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	environment := map[string]string{
		"DATABASE_URL": "postgres://user:secret@127.0.0.1:1/x", "NATS_URL": "nats://user:secret@127.0.0.1:1",
	}
	tests := []struct {
		want string
		env  map[string]string
		args []string
	}{
		{want: "expected one of"},
		{want: "expected one of", args: []string{"team"}},
		{want: "unexpected argument teams, did you mean \"team\"?\n", args: []string{"teams"}},
		{want: "unexpected argument teams", args: []string{"help", "teams"}},
		{want: "must be one of \"bash\",\"zsh\",\"fish\"", args: []string{"completion", "sh"}},
		{want: `expected "<bash|zsh|fish>".`, args: []string{"completion"}},
		{want: "--output must be one of", args: []string{"team", "list", "--output", "xml"}},
		{want: "unknown flag --nam, did you mean \"--name\"?\n", args: []string{"team", "create", "--nam", "x"}},
		{want: "unknown flag -v, did you mean \"--version\"?\n", args: []string{"-v"}},
		{want: "unknown flag -V, did you mean \"--version\"?\n", args: []string{"team", "list", "-V"}},
		{want: "unknown flag -d, did you mean one of \"--database-url\", \"--docs-url\", \"--drain-delay\"?\n", args: []string{"api", "-d"}},
		{want: "unknown flag -x.\n", args: []string{"team", "list", "-x"}},
		{want: "unknown flag --team: the team is an argument: roomsensor team delete TEAM.\n", args: []string{"team", "delete", "--team", "X"}},
		{want: "unknown flag --device: the device is an argument: roomsensor device show DEVICE.\n", args: []string{"device", "show", "--device=X"}},
		{want: "--database-url (DATABASE_URL) is missing", env: map[string]string{"DATABASE_URL": ""}, args: []string{"team", "list"}},
		{want: "--database-url (DATABASE_URL) cannot be combined with DATABASE_URL_FILE", env: map[string]string{"DATABASE_URL_FILE": "/x"}, args: []string{"team", "list"}},
		{want: "--database-url (DATABASE_URL) names a file that is empty", env: map[string]string{"DATABASE_URL": "", "DATABASE_URL_FILE": "/nowhere"}, args: []string{"team", "list"}},
		{want: "--database-api-password (DATABASE_API_PASSWORD) names a file", env: map[string]string{"DATABASE_API_PASSWORD_FILE": "/nowhere"}, args: []string{"migrate", "up"}},
		{want: "--database-url (DATABASE_URL) is not a URL of a PostgreSQL database", args: []string{"team", "list", "--database-url", "mysql://user:secret@db/x"}},
		{want: "--database-url (DATABASE_URL) is not a URL of a PostgreSQL database", args: []string{"team", "list", "--database-url", "postgres://user:secret@db/x?sslmode=perhaps"}},
		{want: "--database-url (DATABASE_URL) is not a URL", env: map[string]string{"DATABASE_URL": "user:secret"}, args: []string{"migrate", "up"}},
		{want: "--api-addr (API_ADDR) is not an address", env: map[string]string{"API_ADDR": "80"}, args: []string{"api"}},
		{want: "--public-url (PUBLIC_URL) must not end in /v1", env: map[string]string{"PUBLIC_URL": "https://a.example/v1"}, args: []string{"api"}},
		{want: "--log-level (LOG_LEVEL) must be one of", env: map[string]string{"LOG_LEVEL": "loud"}, args: []string{"api"}},
		{want: "--nats-url (NATS_URL) is missing", env: map[string]string{"NATS_URL": ""}, args: []string{"ingest"}},
		{want: "--nats-url (NATS_URL) is not a URL of NATS", args: []string{"upload", "--nats-url", "http://user:secret@queue"}},
		{want: "--no-worker (NO_WORKER)", env: map[string]string{"NO_WORKER": "true"}, args: []string{"ingest", "--no-receiver"}},
		{want: "--no-worker (NO_WORKER)", env: map[string]string{"NO_WORKER": "perhaps"}, args: []string{"ingest"}},
		{want: "--stream-replicas (STREAM_REPLICAS)", env: map[string]string{"STREAM_REPLICAS": "x"}, args: []string{"ingest"}},
		{want: "--stream-max-bytes (STREAM_MAX_BYTES)", args: []string{"stream", "replay", "--stream-max-bytes", "8GB"}},
		{want: "--since", args: []string{"stream", "replay", "--since", "yesterday"}},
		{want: "--limit must be a whole number from 1 to 100000", args: []string{"rejects", "list", "--limit", "0"}},
		{want: "--limit must be a whole number from 1 to 100000", args: []string{"rejects", "list", "--limit", "100001"}},
		{want: "is not a reason. The reasons are not_parsable,", args: []string{"rejects", "list", "--reason", "bad"}},
		{want: "is not a hardware id", args: []string{"rejects", "list", "--hardware-id", "x"}},
		{want: "is not a UTC time", args: []string{"rejects", "list", "--since", "2026-01-01"}},
		{want: "is not an id", args: []string{"rejects", "replay", unknown, "x"}},
		{want: "Specify the rejects", args: []string{"rejects", "replay"}},
	}
	for _, test := range tests {
		env := maps.Clone(environment)
		maps.Copy(env, test.env)
		r := execute(t, env, nil, test.args...)
		require.Equal(t, cli.ExitUsage, r.code, "%v: %s", test.args, r.err)
		require.Contains(t, r.err, test.want, "%v", test.args)
		require.NotContains(t, r.err, "secret", "%v", test.args)
		require.Empty(t, r.out, "%v", test.args)
	}
}

// TestUnavailableServers uses port 1, on which nothing listens.
func TestUnavailableServers(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"DATABASE_URL": "postgres://user:secret@127.0.0.1:1/x", "NATS_URL": "nats://user:secret@127.0.0.1:1",
	}
	for _, args := range [][]string{
		{"team", "list"}, {"migrate", "up"}, {"migrate", "status"}, {"rejects", "show", unknown},
	} {
		r := execute(t, env, nil, args...)
		require.Equal(t, cli.ExitFailure, r.code, "%v: %s", args, r.err)
		require.Contains(t, r.err, "Check that it runs and that --database-url (DATABASE_URL) is right", args)
		require.NotContains(t, r.err, "secret", args)
	}
	for _, args := range [][]string{{"stream", "replay"}, {"stream", "status"}, {"upload"}} {
		r := execute(t, env, strings.NewReader(""), args...)
		require.Equal(t, cli.ExitFailure, r.code, "%v: %s", args, r.err)
		require.Contains(t, r.err, "--nats-url (NATS_URL) is right", args)
		require.NotContains(t, r.err, "secret", args)
	}
}

func TestFlagOverridesEnvironment(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	url := o.environment["DATABASE_URL"]
	env := map[string]string{"DATABASE_URL": "postgres://127.0.0.1:1/x"}
	require.Equal(t, cli.ExitOK, execute(t, env, nil, "team", "list", "--database-url", url).code)
	require.Equal(t, cli.ExitFailure, execute(t, env, nil, "team", "list").code)
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, stderr bytes.Buffer
	code := program().Run(ctx, []string{"team", "list"}, func(name string) string { return o.environment[name] }, nil, &out, &stderr)
	require.Equal(t, cli.ExitFailure, code)
	require.Contains(t, stderr.String(), "Interrupted.")
}

// brokenPipe is an output whose reader is gone.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestBrokenOutput(t *testing.T) {
	t.Parallel()
	code := program().Run(t.Context(), []string{"version"}, func(string) string { return "" }, nil, brokenPipe{}, io.Discard)
	require.Equal(t, cli.ExitFailure, code)
}

func TestVersion(t *testing.T) {
	t.Parallel()
	r := execute(t, nil, nil, "version")
	require.Equal(t, cli.ExitOK, r.code)
	require.Regexp(t, `^\{"version":"[^"]+","go":"go1\.[^"]+"\}\n$`, r.out)
	r = execute(t, nil, nil, "--version")
	require.Equal(t, cli.ExitOK, r.code)
	require.Regexp(t, `^roomsensor \S+ \(go1\.\S+, \w+/\w+\)\n$`, r.out)
}
