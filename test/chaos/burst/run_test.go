package burst

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/test/dbtest"
	"roomsensor/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small returns the options of a trial of a few seconds.
func small() Options {
	return Options{
		Devices: 9, Days: 1, Senders: 8, Fresh: 4, FreshRate: 50, Calm: 300 * time.Millisecond,
		BurstWorkers: 2, Workers: []int{1, 2}, Seed: 1,
	}
}

// TestRun runs a small trial with real processes: a late burst is stored completely and once, with any number of
// workers, and /devices/current is right throughout.
func TestRun(t *testing.T) {
	t.Parallel()
	o := small()
	o.DatabaseURL, o.Progress = dbtest.New(t).URL, t.Output()
	r, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, r.Failure())
	require.Greater(t, r.Readings, r.Distinct, "some uploads are sent twice")
	require.Greater(t, r.Distinct, 2000)
	require.Positive(t, r.Burst.Checks)
	require.Positive(t, r.Burst.Before.Uploads)
	require.Positive(t, r.Burst.Before.Confirmed.P50)
	require.Greater(t, r.Burst.Before.Visible.Max, r.Burst.Before.Confirmed.P50)
	require.Positive(t, r.Burst.WorkerPeak)
	require.Positive(t, r.Burst.ReceiverPeak)
	require.Len(t, r.Scaling, 2)
	require.Zero(t, r.Scaling[0].Redeliveries, "a single worker returns no message")
	require.Positive(t, r.Churn.Joined)
	var out bytes.Buffer
	require.NoError(t, r.Print(&out))
	require.True(t, strings.HasSuffix(out.String(), "\n0 lost, 0 duplicated, 0 wrong, 0 phantom\n"), out.String())
}

func TestOptionsValidate(t *testing.T) {
	t.Parallel()
	valid := small()
	require.NoError(t, valid.Validate())
	for _, change := range []func(*Options){
		func(o *Options) { o.Devices = 0 }, func(o *Options) { o.Days = 0 }, func(o *Options) { o.Workers = nil },
		func(o *Options) { o.Workers = []int{1, 0} },
	} {
		o := small()
		change(&o)
		_, err := Run(t.Context(), o)
		require.Error(t, err)
	}
}

func TestReportFailure(t *testing.T) {
	t.Parallel()
	r := &Report{}
	require.NoError(t, r.Failure())
	r.Burst.WrongStates = 1
	require.ErrorIs(t, r.Failure(), harness.ErrFailed)
	r = &Report{Scaling: []WorkersResult{{}}}
	r.Scaling[0].Verdict.Lost = 1
	require.ErrorIs(t, r.Failure(), harness.ErrFailed)
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	require.Equal(t, Quantiles{}, quantiles(nil))
	require.Equal(t, Quantiles{P50: 2, P99: 3, Max: 3},
		quantiles([]time.Duration{3 * time.Second, time.Second, 2 * time.Second}))
}
