// Package load drives requests: in a closed loop, where each connection asks again as soon as it is answered, for
// throughput; and in an open loop, where requests come at a constant rate whether or not the last one was answered, for
// latency.
package load

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Request makes the n-th request of a connection; an error ends the run.
type Request func(ctx context.Context, connection, n int) error

// Result is what a run took.
type Result struct {
	Requests  int
	Elapsed   time.Duration
	latencies []time.Duration // ascending
}

// Rate is requests a second.
func (r *Result) Rate() float64 { return float64(r.Requests) / r.Elapsed.Seconds() }

// Quantile is the time within which that share of the requests was answered; 0 for none.
func (r *Result) Quantile(q float64) time.Duration {
	if len(r.latencies) == 0 {
		return 0
	}
	return r.latencies[min(len(r.latencies)-1, int(q*float64(len(r.latencies))))]
}

// Closed runs connections side by side for a time. A request that has begun is finished and counted.
func Closed(ctx context.Context, connections int, d time.Duration, do Request) (*Result, error) {
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	latencies := make([][]time.Duration, connections)
	for c := range connections {
		group.Go(func() error {
			for n := 0; time.Since(began) < d; n++ {
				sent := time.Now()
				if err := do(ctx, c, n); err != nil {
					return err
				}
				latencies[c] = append(latencies[c], time.Since(sent))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("running a closed loop: %w", err)
	}
	return newResult(slices.Concat(latencies...), time.Since(began)), nil
}

func newResult(latencies []time.Duration, elapsed time.Duration) *Result {
	slices.Sort(latencies)
	return &Result{Requests: len(latencies), Elapsed: elapsed, latencies: latencies}
}

// mostOpen is how many requests may be under way in an open loop: beyond it the rate is out of reach.
const mostOpen = 1000

// Open sends requests at a constant rate for a time. The latency of a request counts from the instant at which it was
// due, so that one which had to wait behind others is not taken for a fast one.
func Open(ctx context.Context, rate float64, d time.Duration, do Request) (*Result, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(mostOpen)
	var mu sync.Mutex
	var latencies []time.Duration
	began := time.Now()
	ticker := time.NewTimer(0)
	defer ticker.Stop()
	for n := range int(rate * d.Seconds()) {
		due := began.Add(time.Duration(float64(n) / rate * float64(time.Second)))
		ticker.Reset(time.Until(due))
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("running an open loop: %w", group.Wait())
		case <-ticker.C:
		}
		group.Go(func() error {
			if err := do(ctx, n, n); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			latencies = append(latencies, time.Since(due))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("running an open loop: %w", err)
	}
	return newResult(latencies, time.Since(began)), nil
}
