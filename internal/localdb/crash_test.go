package localdb

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCrashLeavesWhatWasCommitted(t *testing.T) {
	t.Parallel()
	d := newCluster(t)
	for _, test := range []struct {
		name  string
		alone bool
	}{{"all processes", false}, {"the first process alone", true}} {
		s, err := Start(t.Context(), options(t, d))
		require.NoError(t, err, test.name)
		require.Equal(t, d.path, s.DataDir)
		execute(t, s.URL, "CREATE TABLE IF NOT EXISTS kept (n int); INSERT INTO kept VALUES (1)")
		pid, ok := d.postmaster()
		require.True(t, ok)
		require.NotEmpty(t, children(pid))

		require.NoError(t, Crash(t.Context(), d.path, test.alone))
		require.Eventually(t, func() bool { _, runs := d.postmaster(); return !runs }, 30*time.Second, pollInterval)
		require.ErrorIs(t, Crash(t.Context(), d.path, test.alone), ErrNotRunning)
	}
	again, err := Start(t.Context(), options(t, d))
	require.NoError(t, err)
	require.Equal(t, "2", query(t, again.URL, "SELECT count(*)::text FROM kept"))
}

func TestCrashOfNothing(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, Crash(t.Context(), t.TempDir(), false), ErrNotRunning)
}
