package processes

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/test/proctest"
)

func TestProgramReportsItsEnd(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*program) error{
		"start": func(p *program) error { return p.start(t.Context()) },
		"kill":  (*program).kill, "stop": (*program).stop,
		"signal": func(p *program) error { return p.signal(syscall.SIGSTOP) },
	} {
		p := &program{launch: func(context.Context) (*proctest.Process, error) {
			return proctest.Start(proctest.Command{Path: "true"})
		}}
		require.NoError(t, p.start(t.Context()))
		require.Eventually(t, p.process.Ended, patience, time.Millisecond)
		require.ErrorIs(t, call(p), errNotRunning, name)
	}
	p := &program{launch: func(context.Context) (*proctest.Process, error) { return nil, errNotRunning }}
	require.ErrorIs(t, p.start(t.Context()), errNotRunning)
}
