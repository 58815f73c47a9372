package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
	"roomsensor/test/dbtest"
)

func TestMain(m *testing.M) { dbtest.Verify(m) }

// result is the exit code and output of a command line.
type result struct {
	code     int
	out, err string
}

// execute runs a command line with its own environment variables.
func execute(t *testing.T, environment map[string]string, stdin io.Reader, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	code := program().Run(t.Context(), args, func(name string) string { return environment[name] }, stdin, &out, &err)
	return result{code, out.String(), err.String()}
}

// operator runs commands against its own database.
type operator struct {
	t           *testing.T
	environment map[string]string
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	return &operator{t, map[string]string{"DATABASE_URL": dbtest.New(t).URL}}
}

func (o *operator) run(args ...string) result {
	o.t.Helper()
	return execute(o.t, o.environment, strings.NewReader(""), args...)
}

// do runs a command that must succeed and print one object, with each object of its lists on a line of its own.
func (o *operator) do(args ...string) map[string]any {
	o.t.Helper()
	r := o.run(args...)
	require.Equal(o.t, cli.ExitOK, r.code, "%v: %s", args, r.err)
	require.Empty(o.t, r.err, "%v", args)
	require.True(o.t, strings.HasSuffix(r.out, "}\n"), r.out)
	var object map[string]any
	require.NoError(o.t, json.Unmarshal([]byte(r.out), &object))
	lines := 1
	for _, value := range object {
		if list, ok := value.([]any); ok && len(list) > 0 {
			if _, ok := list[0].(map[string]any); ok {
				lines += len(list) + 1
			}
		}
	}
	require.Equal(o.t, lines, strings.Count(r.out, "\n"), r.out)
	return object
}

// data runs a command that lists objects and returns them.
func (o *operator) data(args ...string) []map[string]any {
	o.t.Helper()
	object := o.do(args...)
	require.Len(o.t, object, 1)
	items, ok := object["data"].([]any)
	require.True(o.t, ok, "data must be a list, never null: %v", object)
	list := make([]map[string]any, len(items))
	for i, item := range items {
		list[i], ok = item.(map[string]any)
		require.True(o.t, ok)
	}
	return list
}

// id runs a command that creates an object and returns one of its fields.
func (o *operator) id(field string, args ...string) string {
	o.t.Helper()
	id, ok := o.do(args...)[field].(string)
	require.True(o.t, ok)
	return id
}

// fails checks that a command fails with an exit code and a message.
func (o *operator) fails(code int, want string, args ...string) {
	o.t.Helper()
	r := o.run(args...)
	require.Equal(o.t, code, r.code, "%v: %s%s", args, r.out, r.err)
	require.Empty(o.t, r.out, "%v", args)
	require.Contains(o.t, r.err, want, "%v", args)
	require.True(o.t, strings.HasPrefix(r.err, "roomsensor: "), r.err)
	require.Regexp(o.t, `\.\n$`, r.err)
}

func (o *operator) team() string {
	o.t.Helper()
	return o.id("id", "team", "create", "--name", "Team "+uuid.NewString()) // A shared name is a warning on stderr.
}

func (o *operator) device(team, hardware string, more ...string) string {
	o.t.Helper()
	return o.id("device_id", append([]string{"device", "create", "--team", team, "--hardware-id", hardware}, more...)...)
}

// unknown is an id that does not exist.
const unknown = "6fa459ea-ee8a-4ca4-894e-db77e160355e"

// The program contains nothing that only development needs: no server of NATS, no client of Docker, no installer of
// packages.
func TestDependencies(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	development := regexp.MustCompile(
		`^(roomsensor/internal/(dev|demo|simulate)|github\.com/nats-io/nats-server|github\.com/testcontainers|` +
			`github\.com/(moby|docker)|roomsensor/test)\b`)
	for line := range strings.Lines(string(out)) {
		require.NotRegexp(t, development, line)
	}
}
