package cli

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/internal/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOutput(t *testing.T) {
	t.Parallel()
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
		terminal := &Terminal{Stdout: &out, Shows: test.shows}
		require.NoError(t, terminal.Print(Format{test.output}, struct {
			Name string `json:"name"`
		}{"x"}))
		require.Equal(t, test.want, out.String())
	}

	// In JSON, each object of a list has a line of its own.
	type item struct {
		Name  string     `json:"name"`
		Tags  []string   `json:"tags"`
		Inner []struct{} `json:"inner"`
	}
	out.Reset()
	require.NoError(t, (&Terminal{Stdout: &out}).PrintJSON(struct {
		Count int      `json:"count"`
		Names []string `json:"names"`
		None  []item   `json:"none"`
		Data  []item   `json:"data"`
		Last  item     `json:"last"`
	}{2, []string{"a"}, []item{}, []item{{`[{"\"},{`, nil, []struct{}{{}}}, {"<y>", []string{"{"}, nil}}, item{}}))
	want := `{"count":2,"names":["a"],"none":[],"data":[
{"name":"[{\"\\\"},{","tags":null,"inner":[{}]},
{"name":"<y>","tags":["{"],"inner":null}
],"last":{"name":"","tags":null,"inner":null}}
`
	require.Equal(t, want, out.String())
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
		terminal := &Terminal{Stdin: answer, Stderr: io.Discard, Asks: true}
		return terminal.Confirm(ctx, Confirmation{})
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

	unattended := &Terminal{Stdin: strings.NewReader("yes\n"), Stderr: io.Discard}
	require.Equal(t, errUnconfirmed, unattended.Confirm(t.Context(), Confirmation{}))
	require.NoError(t, unattended.Confirm(t.Context(), Confirmation{Yes: true}))
	require.False(t, isTerminal(strings.NewReader("")))
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }
