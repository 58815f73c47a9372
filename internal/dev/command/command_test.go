package command

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRunShowsTheEndOfTheOutput(t *testing.T) {
	t.Parallel()
	_, err := Command{
		Step: "counting", Argv: []string{"/bin/sh", "-c", "seq 10000; exit 3"}, Dir: "/", Limit: time.Minute,
	}.Run(t.Context(), &Progress{})
	require.ErrorContains(t, err, "counting: exit status 3\n    ")
	require.ErrorContains(t, err, "\n    10000")
	require.Less(t, len(err.Error()), 2*outputKept)
}

func TestReach(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, as which PostgreSQL runs under another user")
	}
	closed := filepath.Join(t.TempDir(), "closed")
	require.NoError(t, os.MkdirAll(filepath.Join(closed, "data"), 0o700))
	as, err := AccountFor(closed)
	require.NoError(t, err)
	require.ErrorContains(t, as.Reach(t.Context(), filepath.Join(closed, "data")), "choose another directory")
}
