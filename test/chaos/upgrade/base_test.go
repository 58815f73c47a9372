package upgrade

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// clone makes a repository with a commit per name.
func clone(t *testing.T, commits ...string) (dir string, run func(args ...string) string) {
	t.Helper()
	dir = t.TempDir()
	run = func(args ...string) string {
		t.Helper()
		args = append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.com"}, args...)
		output, err := git(t.Context(), dir, args...)
		require.NoError(t, err)
		return output
	}
	run("init", "--quiet")
	for _, name := range commits {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte(name), 0o600))
		run("add", "file")
		run("commit", "--quiet", "--message", name)
	}
	return dir, run
}

func TestFindBase(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("finding an old version needs git")
	}
	t.Run("newest tag before the commit", func(t *testing.T) {
		t.Parallel()
		dir, run := clone(t, "1", "2", "3")
		run("tag", "v0.1.0", "HEAD~1")
		run("tag", "v0.2.0") // A release is compared with the one before it.
		run("tag", "nightly", "HEAD~1")
		found, err := findBase(t.Context(), dir, "")
		require.NoError(t, err)
		require.Equal(t, base{"v0.1.0", run("rev-parse", "HEAD~1")}, found)
	})
	t.Run("named", func(t *testing.T) {
		t.Parallel()
		dir, run := clone(t, "1", "2")
		found, err := findBase(t.Context(), dir, "HEAD~1")
		require.NoError(t, err)
		require.Equal(t, base{"HEAD~1", run("rev-parse", "HEAD~1")}, found)
		_, err = findBase(t.Context(), dir, "v9")
		require.ErrorContains(t, err, "finding the old version v9")
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		dir, _ := clone(t, "1", "2")
		_, err := findBase(t.Context(), dir, "")
		require.ErrorIs(t, err, ErrNoBase)
	})
}
