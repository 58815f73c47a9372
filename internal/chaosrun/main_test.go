package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/chaos"
)

func TestFlagsChangeTheTrial(t *testing.T) {
	t.Parallel()
	f := flags{Seed: 4}
	require.Equal(t, chaos.Full(4), f.options(nil))
	f.Short = true
	require.Equal(t, chaos.Short(4), f.options(nil))
	f.Readings, f.Burst, f.Workers, f.AckEarly, f.Dir = 7, time.Second, 5, true, "here"
	o := f.options(nil)
	require.Equal(t, []any{7, time.Second, 5, true, "here"}, []any{o.Readings, o.Burst, o.Workers, o.AckEarly, o.Dir})
	drawn, again := (&flags{}).options(nil), (&flags{}).options(nil)
	require.NotEqual(t, drawn.Seed, again.Seed)
}

func TestThePlanCanBeSeenAlone(t *testing.T) {
	t.Parallel()
	var out, progress bytes.Buffer
	passed, err := run(t.Context(), flags{Seed: 4, Plan: true}, &out, &progress)
	require.NoError(t, err)
	require.True(t, passed)
	require.Empty(t, out.String())
	require.Contains(t, progress.String(), "seed 4; the plan:\n")
	require.Contains(t, progress.String(), "kill postmaster")
}

func TestATrialThatCannotBeginSaysSo(t *testing.T) {
	t.Parallel()
	var out, progress bytes.Buffer
	passed, err := run(t.Context(), flags{Seed: 4, Short: true, Workers: 1}, &out, &progress)
	require.ErrorContains(t, err, "a trial needs")
	require.False(t, passed)
	require.Empty(t, out.String(), "there is no verdict")
}
