package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/internal/dbtest"
)

// asProgram is the variable that makes the binary of the tests be the program, so that tests can run it in processes of
// its own. Such a process fails when it leaves something running.
const asProgram = "ROOMSENSOR_TEST_AS_PROGRAM"

const exitLeak = 97

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		code := run(context.Background(), os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
		if err := goleak.Find(); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			code = exitLeak
		}
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// result is what a command line left behind.
type result struct {
	code     int
	out, err string
}

// execute runs a command line in an environment of its own.
func execute(t *testing.T, environment map[string]string, stdin io.Reader, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	code := run(t.Context(), args, func(name string) string { return environment[name] }, stdin, &out, &err)
	return result{code, out.String(), err.String()}
}

// operator runs the operator's commands against a database of its own.
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

// do runs a command that must succeed and print one object on one line.
func (o *operator) do(args ...string) map[string]any {
	o.t.Helper()
	r := o.run(args...)
	require.Equal(o.t, exitOK, r.code, "%v: %s", args, r.err)
	require.Empty(o.t, r.err, "%v", args)
	require.Equal(o.t, 1, strings.Count(r.out, "\n"), r.out)
	require.True(o.t, strings.HasSuffix(r.out, "}\n"), r.out)
	var object map[string]any
	require.NoError(o.t, json.Unmarshal([]byte(r.out), &object))
	return object
}

// data runs a command that lists.
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

// id runs a command that makes something and returns a field of it.
func (o *operator) id(field string, args ...string) string {
	o.t.Helper()
	id, ok := o.do(args...)[field].(string)
	require.True(o.t, ok)
	return id
}

// fails runs a command that must fail and say why.
func (o *operator) fails(code int, says string, args ...string) {
	o.t.Helper()
	r := o.run(args...)
	require.Equal(o.t, code, r.code, "%v: %s%s", args, r.out, r.err)
	require.Empty(o.t, r.out, "%v", args)
	require.Contains(o.t, r.err, says, "%v", args)
	require.True(o.t, strings.HasPrefix(r.err, "roomsensor: "), r.err)
	require.Regexp(o.t, `\.\n$`, r.err)
}

func (o *operator) team() string {
	o.t.Helper()
	return o.id("id", "team", "create", "--name", "Team")
}

func (o *operator) device(team, hardware string, more ...string) string {
	o.t.Helper()
	return o.id("device_id", append([]string{"device", "create", "--team", team, "--hardware-id", hardware}, more...)...)
}

// unknown is an id that nothing has.
const unknown = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
