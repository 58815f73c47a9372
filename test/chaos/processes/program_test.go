package processes

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

	"roomsensor/test/proctest"
)

// shell returns a program that runs a script, and the number of its starts.
func shell(t *testing.T, script string) (p *program, starts func() int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "starts")
	p = &program{name: script, launch: func(context.Context) (*proctest.Process, error) {
		return proctest.Start(proctest.Command{Path: "sh", Args: []string{"-c", "echo >>" + path + "; " + script}})
	}}
	t.Cleanup(func() { _ = p.kill() })
	return p, func() int {
		lines, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return 0
		}
		require.NoError(t, err)
		return strings.Count(string(lines), "\n")
	}
}

// forever runs until it gets SIGTERM.
const forever = "exec sleep 1000"

func TestProgramRestart(t *testing.T) {
	t.Parallel()
	p, starts := shell(t, forever)
	require.ErrorIs(t, p.kill(), errNotRunning, "not started yet")
	require.NoError(t, p.stop(), "not started yet")
	for n := 1; n <= 2; n++ {
		require.NoError(t, p.start(t.Context()))
		require.NoError(t, p.start(t.Context()), "it is running already")
		require.Eventually(t, func() bool { return starts() == n }, patience, time.Millisecond)
		require.NoError(t, p.kill())
		require.NoError(t, p.stop(), "it was killed on purpose")
		require.ErrorIs(t, p.kill(), errNotRunning)
	}
}

func TestProgramKillSuspended(t *testing.T) {
	t.Parallel()
	p, starts := shell(t, forever)
	require.ErrorIs(t, p.signal(syscall.SIGSTOP), errNotRunning)
	require.NoError(t, p.start(t.Context()))
	require.Eventually(t, func() bool { return starts() == 1 }, patience, time.Millisecond)
	require.NoError(t, p.signal(syscall.SIGSTOP))
	require.NoError(t, p.signal(syscall.SIGCONT))
	require.NoError(t, p.signal(syscall.SIGSTOP))
	require.NoError(t, p.kill())
}

func TestProgramReportsItsEnd(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*program) error{
		"start": func(p *program) error { return p.start(t.Context()) },
		"kill":  (*program).kill, "stop": (*program).stop,
		"signal": func(p *program) error { return p.signal(syscall.SIGSTOP) },
	} {
		p, _ := shell(t, "exit 0")
		require.NoError(t, p.start(t.Context()))
		require.Eventually(t, p.process.Ended, patience, time.Millisecond)
		require.ErrorIs(t, call(p), errNotRunning, name)
	}
	p := &program{launch: func(context.Context) (*proctest.Process, error) { return nil, errNotRunning }}
	require.ErrorIs(t, p.start(t.Context()), errNotRunning)
}
