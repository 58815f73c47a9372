package chaos

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/procs"
)

// shell is a program that runs a script, which adds a line to a file at its start.
func shell(t *testing.T, script string, died func(string)) (p *program, starts func() int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "starts")
	p = &program{name: script, died: died, launch: func(context.Context) (*procs.Process, error) {
		return procs.Start(procs.Command{Path: "sh", Args: []string{"-c", "echo >>" + path + "; " + script}})
	}}
	t.Cleanup(func() { p.kill() })
	return p, func() int {
		lines, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return 0
		}
		require.NoError(t, err)
		return strings.Count(string(lines), "\n")
	}
}

// forever runs until it is ended, and hears SIGTERM.
const forever = "exec sleep 1000"

func TestAProgramIsKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	died := make(chan string, 1)
	p, starts := shell(t, forever, func(name string) { died <- name })
	require.False(t, p.kill(), "it does not run yet")
	require.NoError(t, p.stop(), "likewise")
	for n := 1; n <= 2; n++ {
		require.NoError(t, p.start(t.Context()))
		require.NoError(t, p.start(t.Context()), "starting twice")
		require.Eventually(t, func() bool { return starts() == n }, patience, time.Millisecond)
		require.True(t, p.kill())
		require.False(t, p.kill())
	}
	require.Empty(t, died, "it was told to end")
}

func TestAHaltedProgramCanBeKilled(t *testing.T) {
	t.Parallel()
	p, starts := shell(t, forever, nil)
	require.ErrorIs(t, p.signal(syscall.SIGSTOP), errNotRunning)
	require.NoError(t, p.start(t.Context()))
	require.Eventually(t, func() bool { return starts() == 1 }, patience, time.Millisecond)
	require.NoError(t, p.signal(syscall.SIGSTOP))
	require.NoError(t, p.signal(syscall.SIGCONT))
	require.NoError(t, p.signal(syscall.SIGSTOP))
	require.True(t, p.kill())
}

func TestAProgramThatEndsByItselfIsTold(t *testing.T) {
	t.Parallel()
	died := make(chan string, 1)
	p, _ := shell(t, "exit 3", func(name string) { died <- name })
	require.NoError(t, p.start(t.Context()))
	require.Equal(t, "exit 3", <-died)
	require.False(t, p.kill())

	p.launch = func(context.Context) (*procs.Process, error) { return nil, errNotRunning }
	require.ErrorIs(t, p.start(t.Context()), errNotRunning)
}
