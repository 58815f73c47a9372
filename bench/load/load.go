package load

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Request sends the n-th request of a connection. An error ends the run.
type Request func(ctx context.Context, connection, n int) error

// Result is the number, duration and latencies of requests.
type Result struct {
	Requests  int
	Elapsed   time.Duration
	latencies []time.Duration // ascending
}

// Rate returns the requests per second.
func (r *Result) Rate() float64 { return float64(r.Requests) / r.Elapsed.Seconds() }

// Quantile returns the latency that the given share of the requests does not exceed; 0 without requests.
func (r *Result) Quantile(q float64) time.Duration {
	if len(r.latencies) == 0 {
		return 0
	}
	return r.latencies[min(len(r.latencies)-1, int(q*float64(len(r.latencies))))]
}

// Closed sends requests in a closed loop for a time: each connection sends the next request after the last answer. It
// finishes and counts requests that have begun.
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

// Limited returns a request that waits until fewer than so many are running. An open loop then has a limit of its
// connections, and the wait is included in its latencies.
func Limited(connections int, do Request) Request {
	running := make(chan struct{}, connections)
	return func(ctx context.Context, connection, n int) error {
		select {
		case running <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("waiting for a connection: %w", ctx.Err())
		}
		defer func() { <-running }()
		return do(ctx, connection, n)
	}
}

// Each sends n requests in a closed loop, each of them once: request k of all is do(ctx, connection, k).
func Each(ctx context.Context, connections, n int, do Request) (*Result, error) {
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	latencies := make([]time.Duration, n)
	var sent atomic.Int64
	for c := range connections {
		group.Go(func() error {
			for k := int(sent.Add(1)) - 1; k < n; k = int(sent.Add(1)) - 1 {
				at := time.Now()
				if err := do(ctx, c, k); err != nil {
					return err
				}
				latencies[k] = time.Since(at)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("running a closed loop: %w", err)
	}
	return newResult(latencies, time.Since(began)), nil
}

func newResult(latencies []time.Duration, elapsed time.Duration) *Result {
	slices.Sort(latencies)
	return &Result{Requests: len(latencies), Elapsed: elapsed, latencies: latencies}
}

// MaxOpen is the maximum number of concurrent requests in an open loop. If it is reached, the rate is not.
const MaxOpen = 1000

// Open sends requests in an open loop for a time: at a constant rate, whether or not earlier requests were answered.
// Latencies count from the instant at which a request was due, so that waiting before it was sent is included.
func Open(ctx context.Context, rate float64, d time.Duration, do Request) (*Result, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(MaxOpen)
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
