package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// events are lines of `go test -json`, of two packages at the same time.
const events = `
{"Action":"start","Package":"a"}
{"Action":"run","Package":"a","Test":"TestOne"}
{"Action":"run","Package":"b","Test":"TestOne"}
{"Action":"output","Package":"a","Test":"TestOne","Output":"=== RUN   TestOne\n"}
{"Action":"output","Package":"a","Test":"TestOne","Output":"    one_test.go:1: some words\n"}
{"Action":"output","Package":"b","Test":"TestOne","Output":"    b_test.go:9: something else\n"}
{"Action":"output","Package":"a","Test":"TestOne","Output":"    one_test.go:2: needs the Community edition\n"}
{"Action":"output","Package":"a","Test":"TestOne","Output":"--- SKIP: TestOne (0.00s)\n"}
{"Action":"skip","Package":"a","Test":"TestOne","Elapsed":0}
{"Action":"pass","Package":"b","Test":"TestOne","Elapsed":0}
{"Action":"output","Package":"b","Test":"TestTwo/sub","Output":"    b_test.go:9: needs the Community edition\n"}
{"Action":"skip","Package":"b","Test":"TestTwo/sub"}
{"Action":"fail","Package":"b","Test":"TestTwo"}
{"Action":"skip","Package":"b","Test":"TestMute"}
{"Action":"output","Package":"c","Output":"?   \tc\t[no test files]\n"}
{"Action":"skip","Package":"c","Elapsed":0}
{"Action":"fail","Package":"b"}
`

func TestSummary(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.json")
	require.NoError(t, os.WriteFile(path, []byte(events), 0o600))
	s, err := summarize(path)
	require.NoError(t, err)
	require.Equal(t, `tests: 1 passed, 1 failed, 3 skipped
  1 skipped: (without a reason)
  2 skipped: needs the Community edition
`, s.String())
}

// A key that a service under test wrote is seen in what its test wrote, whether that passed or not.
func TestSummaryFindsSecrets(t *testing.T) {
	t.Parallel()
	s, err := count(strings.NewReader(events))
	require.NoError(t, err)
	require.NoError(t, s.secretive())
	_, key, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	line := `{"Action":"output","Package":"a","Test":"TestOne","Output":"    one_test.go:1: GET /v1/readings.csv?key=` + key + `\n"}` + "\n"
	s, err = count(strings.NewReader(events + line + line))
	require.NoError(t, err)
	require.EqualError(t, s.secretive(), "what looks like the secret of a key is in the output of these tests:\n  a TestOne")
}

func TestSummaryOfBrokenResults(t *testing.T) {
	t.Parallel()
	_, err := count(strings.NewReader(`{"Action":"run"} {`))
	require.ErrorContains(t, err, "unexpected EOF")
	_, err = summarize(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCommand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "-race ./..."},
		{[]string{"-run=TestX", "-count=2"}, "-race -run=TestX -count=2 ./..."},
		{[]string{"./internal/store/", "-v"}, "-race ./internal/store/ -v"},
		{[]string{"roomsensor/schema"}, "-race roomsensor/schema"},
	} {
		require.Contains(t, strings.Join(command("e", true, test.args), " "), "-timeout=20m "+test.want)
	}
	require.NotContains(t, command("e", false, nil), "-race")
}
