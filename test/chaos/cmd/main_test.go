package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"roomsensor/test/chaos/abuse"
	"roomsensor/test/chaos/cluster"
	"roomsensor/test/chaos/fleet"
	"roomsensor/test/chaos/processes"
)

// parse returns the commands for a command line.
func parse(t *testing.T, args ...string) *commands {
	t.Helper()
	c := newCommands()
	parser, err := kong.New(c)
	require.NoError(t, err)
	_, err = parser.Parse(args)
	require.NoError(t, err)
	return c
}

func TestOptions(t *testing.T) {
	t.Parallel()
	require.Equal(t, processes.Full(4), parse(t, "processes", "--seed=4").Processes.Options)
	p := parse(t, "processes", "--readings=7", "--burst=1s", "--dir=d", "--short", "--seed=4").Processes
	want := processes.Short(4)
	want.Readings, want.Burst, want.Dir = 7, time.Second, "d"
	require.Equal(t, want, p.Options)
	first, second := parse(t, "processes"), parse(t, "processes")
	require.NotEqual(t, first.Processes.Options.Seed, second.Processes.Options.Seed, "the default is random")

	require.Equal(t, cluster.Full(4), parse(t, "cluster", "--seed=4").Cluster.Options)
	c := parse(t, "cluster", "--short", "--seed=4", "--rounds=7", "--detect=1m", "--only=primary", "--asynchronous").Cluster
	wanted := cluster.Short(4)
	wanted.Rounds, wanted.Detect, wanted.Only, wanted.Asynchronous = 7, time.Minute, "primary", true
	require.Equal(t, wanted, c.Options)

	require.Equal(t, abuse.Full(0), parse(t, "abuse").Abuse.Options)
	shortened := abuse.Short(0)
	shortened.Only = []string{"tags", "scans"}
	require.Equal(t, shortened, parse(t, "abuse", "--short", "--only=tags,scans").Abuse.Options)

	require.Equal(t, fleet.Full(4), parse(t, "fleet", "--seed=4").Fleet.Options)
	f := fleet.Short(4)
	f.Devices, f.Teams, f.Duration, f.Settings = 7, 3, time.Second, map[string]string{"shared_buffers": "4GB"}
	require.Equal(t, f, parse(t, "fleet", "--short", "--seed=4", "--devices=7", "--teams=3", "--duration=1s",
		"--settings=shared_buffers=4GB").Fleet.Options)

	b := fleet.Burst(4)
	require.NoError(t, b.Validate())
	b.Late, b.LateFor, b.Workers = 7, time.Hour, 3
	require.Equal(t, b, parse(t, "burst", "--seed=4", "--late=7", "--late-for=1h", "--workers=3").Burst.Options)
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
		"invalid size":    {[]string{"burst", "--devices", "0"}, 1, "", "all sizes must be greater than 0"},
		"invalid number":  {[]string{"burst", "--workers", "x"}, 1, "", "--workers"},
		"unknown attack":  {[]string{"abuse", "--only", "x"}, 1, "", `there is no attack "x"`},
		"too few devices": {[]string{"fleet", "--devices", "9"}, 1, "", "there must be a device for each team"},
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
