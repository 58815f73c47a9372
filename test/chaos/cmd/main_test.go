package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/test/chaos/burst"
	"roomsensor/test/chaos/cluster"
	"roomsensor/test/chaos/processes"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	require.Equal(t, processes.Full(4), (&processesCommand{Seed: 4}).options(nil))
	require.Equal(t, processes.Short(4), (&processesCommand{Seed: 4, Short: true}).options(nil))
	p := (&processesCommand{Seed: 4, Readings: 7, Burst: time.Second, Workers: 5, AckEarly: true, Dir: "d"}).options(nil)
	require.Equal(t, []any{7, time.Second, 5, true, "d"}, []any{p.Readings, p.Burst, p.Workers, p.AckEarly, p.Dir})
	first, second := (&processesCommand{}).options(nil), (&processesCommand{}).options(nil)
	require.NotEqual(t, first.Seed, second.Seed, "the default seed is random")

	require.Equal(t, cluster.Full(4), (&clusterCommand{Seed: 4}).options(nil))
	require.Equal(t, cluster.Short(4), (&clusterCommand{Seed: 4, Short: true}).options(nil))
	c := (&clusterCommand{
		Rounds: 7, Rate: 8, Down: time.Second, Detect: time.Minute, Only: "primary", Asynchronous: true, Dir: "d",
	}).options(nil)
	require.Equal(t, []any{7, 8, time.Second, time.Minute, "primary", true, "d"},
		[]any{c.Rounds, c.Rate, c.Down, c.Detect, c.Only, c.Asynchronous, c.Dir})

	require.Equal(t, burst.Full(), (&burstCommand{}).options(nil))
	b := (&burstCommand{Devices: 7, Workers: []int{1, 3}, Order: "newest"}).options(nil)
	require.Equal(t, []any{7, []int{1, 3}, "newest"}, []any{b.Devices, b.Workers, b.Order})
}

func TestRun(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args          []string
		code          int
		out, progress string
	}{
		"help":            {[]string{"--help"}, 0, "processes", ""},
		"no trial":        {nil, 1, "", "expected one of"},
		"unknown flag":    {[]string{"burst", "--what"}, 1, "", "unknown flag --what"},
		"plan":            {[]string{"processes", "--seed", "4", "--plan"}, 0, "", "seed 4; the plan:\n"},
		"invalid options": {[]string{"processes", "--seed", "4", "--short", "--workers", "1"}, 1, "", "a trial needs"},
		"invalid order":   {[]string{"burst", "--order", "any"}, 1, "", "--order must be one of"},
		"invalid number":  {[]string{"burst", "--workers", "1,x"}, 1, "", "--workers"},
		"no directory":    {[]string{"cluster", "--dir", "/dev/null/none"}, 1, "", "preparing a trial"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, progress bytes.Buffer
			require.Equal(t, test.code, run(t.Context(), test.args, &out, &progress))
			require.Contains(t, out.String(), test.out)
			require.Contains(t, progress.String(), test.progress)
			if test.out == "" {
				require.Empty(t, out.String(), "there is no verdict")
			}
		})
	}
}
