package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/chaos/cluster"
)

func TestFlagsChangeTheTrial(t *testing.T) {
	t.Parallel()
	f := flags{Seed: 4}
	require.Equal(t, cluster.Full(4), f.options(nil))
	f.Short = true
	require.Equal(t, cluster.Short(4), f.options(nil))
	f.Rounds, f.Rate, f.Down, f.Detect = 7, 8, time.Second, time.Minute
	f.Only, f.Asynchronous, f.Dir = "primary", true, "here"
	o := f.options(nil)
	require.Equal(t, []any{7, 8, time.Second, time.Minute, "primary", true, "here"},
		[]any{o.Rounds, o.Rate, o.Down, o.Detect, o.Only, o.Asynchronous, o.Dir})
	drawn, again := (&flags{}).options(nil), (&flags{}).options(nil)
	require.NotEqual(t, drawn.Seed, again.Seed)
}

func TestATrialThatCannotBeginSaysSo(t *testing.T) {
	t.Parallel()
	var out, progress bytes.Buffer
	passed, err := run(t.Context(), flags{Seed: 4, Rounds: -1, Dir: "/dev/null/none"}, &out, &progress)
	require.ErrorContains(t, err, "preparing a trial")
	require.False(t, passed)
	require.Empty(t, out.String(), "there is no verdict")
}
