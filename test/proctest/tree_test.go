package proctest_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/test/proctest"
)

// TestTreeUsage checks that a running child and the processor time of an ended one count.
func TestTreeUsage(t *testing.T) {
	t.Parallel()
	p := shell(t, `sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'
		sleep 1000 & child=$!; trap 'kill $child; exit 0' TERM`)
	defer func() {
		_, err := p.Stop(patience)
		require.NoError(t, err)
	}()
	require.NotEmpty(t, proctest.Children(p.PID()))
	tree, err := proctest.TreeUsage(p.PID())
	require.NoError(t, err)
	alone, err := p.Usage()
	require.NoError(t, err)
	require.Greater(t, tree.CPU, alone.CPU+50*time.Millisecond, "the child that ended took longer than that")
	require.Positive(t, tree.Memory)
	require.Positive(t, alone.Memory)

	parent, err := proctest.Parent(p.PID())
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), parent)
	_, err = proctest.Parent(0)
	require.Error(t, err)
	_, err = proctest.TreeUsage(0)
	require.Error(t, err)
	require.Empty(t, proctest.Children(-1))
}
