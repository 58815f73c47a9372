package proctest_test

import (
	"context"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/test/proctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of a test.
const patience = proctest.Patience

// firstWrite is a log that sends the first text written to it.
type firstWrite struct {
	once sync.Once
	said chan string
}

func (w *firstWrite) Write(text []byte) (int, error) {
	w.once.Do(func() { w.said <- string(text) })
	return len(text), nil
}

// shell starts a script and waits until it runs.
func shell(t *testing.T, script string) *proctest.Process {
	t.Helper()
	log := &firstWrite{said: make(chan string, 1)}
	p, err := proctest.Start(proctest.Command{
		Path: "sh", Args: []string{"-c", script + "; echo $READY; while :; do sleep 0.01; done"}, Env: []string{"READY=ready"}, Log: log,
	})
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	require.Equal(t, "ready\n", <-log.said)
	return p
}

func TestStop(t *testing.T) {
	t.Parallel()
	p := shell(t, "trap 'exit 0' TERM")
	resident, peak, err := p.Memory()
	require.NoError(t, err)
	require.Positive(t, resident)
	require.GreaterOrEqual(t, peak, resident)
	require.NoError(t, p.ResetPeakMemory())
	require.Eventually(t, func() bool {
		cpu, err := p.CPU()
		return err == nil && cpu > 0
	}, patience, time.Millisecond)
	took, err := p.Stop(patience)
	require.NoError(t, err)
	require.Less(t, took, patience)
	_, _, err = p.Memory()
	require.Error(t, err, "it has ended")
	_, err = p.CPU()
	require.Error(t, err, "it has ended")

	_, err = shell(t, "trap 'exit 3' TERM").Stop(patience)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 3, exit.ExitCode())

	ignoring := shell(t, "trap '' TERM")
	_, err = ignoring.Stop(50 * time.Millisecond)
	require.ErrorContains(t, err, "did not end within")
	<-ignoring.Done()
}

func TestStartFailures(t *testing.T) {
	t.Parallel()
	_, err := proctest.Start(proctest.Command{Path: "/nonexistent"})
	require.ErrorContains(t, err, "starting /nonexistent")
	_, err = proctest.Build(t.Context(), t.TempDir(), "roomsensor/nothing")
	require.ErrorContains(t, err, "building roomsensor/nothing")

	p, err := proctest.Start(proctest.Command{Path: "false"})
	require.NoError(t, err)
	address := proctest.Address(t)
	require.ErrorContains(t, p.AwaitReady(t.Context(), address), "ended before it was ready")

	p = shell(t, ":")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, p.AwaitReady(ctx, address), context.DeadlineExceeded)
}
