package processes

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNewPlanSeed(t *testing.T) {
	t.Parallel()
	first, again := NewPlan(Full(1)), NewPlan(Full(1))
	require.Equal(t, first, again)
	require.NotEqual(t, NewPlan(Full(1)), NewPlan(Full(2)))
}

// TestNewPlanFull checks the numbers in docs/operate/reliability.md.
func TestNewPlanFull(t *testing.T) {
	t.Parallel()
	o := Full(1)
	require.GreaterOrEqual(t, o.Readings, 200_000)
	require.GreaterOrEqual(t, o.Workers, 2)
	require.Zero(t, o.AckWait, "as in production")
	plan := NewPlan(o)
	require.Equal(t, o.Faults, plan.counts())
	kinds := map[Kind]int{}
	toxic := map[string]int{}
	for _, f := range plan {
		kinds[f.Kind]++
		if f.Kind == AddToxic {
			toxic[f.Toxic.String()]++
		}
	}
	require.GreaterOrEqual(t, kinds[KillWorker], 50)
	require.GreaterOrEqual(t, kinds[KillQueue], 20)
	require.GreaterOrEqual(t, kinds[KillDatabase]+kinds[KillPostmaster], 20)
	for _, kind := range []Kind{KillReceiver, KillAPI, KillBackend, KillDatabase, KillPostmaster, HaltWorker} {
		require.NotZero(t, kinds[kind], kind)
	}
	require.Len(t, toxic, 2*len(toxics), "each type in both directions")
}

func TestNewPlanNoOverlap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		for _, o := range []Options{Full(seed), Short(seed)} {
			plan := NewPlan(o)
			require.True(t, slices.IsSortedFunc(plan, func(a, b Fault) int { return int(a.At - b.At) }))
			suspended := workerName(o.Workers - 1)
			for i := range plan {
				f := &plan[i]
				require.Positive(t, f.At)
				require.Less(t, f.At, o.Burst)
				require.Less(t, f.For, max(o.Halt, o.MaxToxic)+time.Second)
				require.False(t, f.Kind == AddToxic && f.Target == suspended, "a toxic on a suspended process cannot be removed")
				if f.Kind == KillWorker && f.Target == suspended {
					requireNotSuspended(t, plan, f.At)
				}
			}
		}
	}
}

func requireNotSuspended(t *testing.T, plan Plan, at time.Duration) {
	t.Helper()
	for _, f := range plan {
		require.False(t, f.Kind == HaltWorker && f.At < at && at < f.At+f.For, "a kill must not wait for the end of a halt")
	}
}
