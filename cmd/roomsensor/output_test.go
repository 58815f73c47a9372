package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/process"
)

func TestOutput(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.team()
	const table = "^ID +NAME\n[0-9a-f-]{36}  Team [0-9a-f-]{36}\n$"
	require.Regexp(t, table, o.run("team", "list", "--output", "table").out)
	require.Equal(t, "id:    "+team+"\nname:  Other\n", o.run("team", "rename", team, "--name", "Other", "--output", "table").out)

	// A result is a table on a terminal, unless JSON is asked for, and JSON elsewhere.
	var out strings.Builder
	for _, test := range []struct {
		shows  bool
		output string
		want   string
	}{
		{true, "auto", "name:  x\n"},
		{true, "json", "{\"name\":\"x\"}\n"},
		{false, "auto", "{\"name\":\"x\"}\n"},
		{false, "table", "name:  x\n"},
		{true, "text", "x\n"},
	} {
		out.Reset()
		terminal := &terminal{stdout: &out, shows: test.shows}
		require.NoError(t, terminal.print(format{test.output}, struct {
			Name string `json:"name"`
		}{"x"}))
		require.Equal(t, test.want, out.String())
	}
}

// endless is a terminal at which nobody types.
type endless struct{ ended chan struct{} }

func (e endless) Read([]byte) (int, error) {
	<-e.ended
	return 0, io.EOF
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	ask := func(ctx context.Context, answer io.Reader) error {
		terminal := &terminal{stdin: answer, stderr: io.Discard, asks: true}
		return terminal.confirm(ctx, confirmation{})
	}
	for answer, want := range map[string]error{
		"yes\n": nil, "YES\r\n": nil, "yes": nil,
		"": errDeclined, "\n": errDeclined, "y\n": errDeclined, "no\n": errDeclined, "no\nyes\n": errDeclined,
	} {
		require.Equal(t, want, ask(t.Context(), strings.NewReader(answer)), "%q", answer)
	}
	require.ErrorContains(t, ask(t.Context(), brokenReader{}), "reading the answer")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	nobody := endless{make(chan struct{})}
	t.Cleanup(func() { close(nobody.ended) })
	require.Equal(t, process.ErrInterrupted, ask(ctx, nobody))

	unattended := &terminal{stdin: strings.NewReader("yes\n"), stderr: io.Discard}
	require.Equal(t, errUnconfirmed, unattended.confirm(t.Context(), confirmation{}))
	require.NoError(t, unattended.confirm(t.Context(), confirmation{Yes: true}))
	require.False(t, isTerminal(strings.NewReader("")))
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }
