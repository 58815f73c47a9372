package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/internal/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a trial of seconds.
var small = options{
	Devices: 9, Days: 1, Order: mixed, Senders: 8, Fresh: 4, FreshRate: 50, Calm: 300 * time.Millisecond,
	Attending: 2, Workers: []int{1, 2}, Seed: 1,
}

func testGround(t *testing.T, ctx context.Context) *ground { //nolint:revive // The context outlives none of the processes.
	t.Helper()
	g, err := build(ctx, t.TempDir(), io.Discard)
	require.NoError(t, err)
	g.database = func(context.Context) (string, func() error, error) {
		return dbtest.New(t).URL, func() error { return nil }, nil //nolint:contextcheck // It has its own.
	}
	return g
}

// The whole trial, with real processes: all of a late burst lands, once, whoever stores it, and /devices/current is
// right throughout.
func TestALateBurstLands(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err := try(ctx, testGround(t, ctx), small)
	require.NoError(t, err)
	require.NoError(t, r.verdict())

	require.Greater(t, r.Readings, r.Distinct, "some came twice")
	require.Greater(t, r.Distinct, 2000)
	for _, v := range r.verdicts() {
		require.Equal(t, verdict{Stored: r.Distinct}, v)
	}
	require.Positive(t, r.Burst.Looks)
	require.Positive(t, r.Burst.Before.Uploads)
	require.Positive(t, r.Burst.Before.Confirmed.P50)
	require.Greater(t, r.Burst.Before.Visible.Max, r.Burst.Before.Confirmed.P50)
	require.Positive(t, r.Burst.WorkerPeak)
	require.Len(t, r.Scaling, 2)
	require.Zero(t, r.Scaling[0].Again, "one worker gives nothing back")

	var said bytes.Buffer
	r.print(&said)
	require.Contains(t, said.String(), "0 lost, 0 wrong, 0 phantom, 0 rejects")
	dir := filepath.Join(t.TempDir(), "results")
	require.NoError(t, r.write(dir))
	text, err := os.ReadFile(filepath.Join(dir, "burst.json"))
	require.NoError(t, err)
	var kept report
	require.NoError(t, json.Unmarshal(text, &kept))
	require.Equal(t, r.Burst, kept.Burst)
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	o, results, err := parse([]string{"--devices", "7", "--workers", "1,3", "--order", "newest"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 7, o.Devices)
	require.Equal(t, []int{1, 3}, o.Workers)
	require.Equal(t, "bench/results", results)
	for _, args := range [][]string{
		{"--workers", "1,x"}, {"--workers", "0"}, {"--order", "any"}, {"--devices", "0"}, {"--days", "0"}, {"--what"},
	} {
		_, _, err := parse(args, io.Discard)
		require.Error(t, err, args)
	}
}
