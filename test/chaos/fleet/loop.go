package fleet

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"roomsensor/internal/retry"
)

// loop sends the requests of a schedule: request n is due some time after the start, and a free sender takes it. If all
// senders are busy, requests become late. They are sent nevertheless, and do counts its time from the instant at which
// it was due, so that a slow service does not look fast because its clients wait. loop returns after the last request,
// or with the error of ctx.
func loop(
	ctx context.Context, senders, requests int, start time.Time, due func(n int) time.Duration,
	do func(ctx context.Context, n int, due time.Time),
) error {
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan int)
	group.Go(func() error {
		defer close(next)
		for n := range requests {
			if err := retry.Sleep(ctx, time.Until(start.Add(due(n)))); err != nil {
				return fmt.Errorf("sending requests: %w", err)
			}
			select {
			case next <- n:
			case <-ctx.Done():
				return fmt.Errorf("sending requests: %w", ctx.Err())
			}
		}
		return nil
	})
	for range senders {
		group.Go(func() error {
			for n := range next {
				do(ctx, n, start.Add(due(n)))
			}
			return nil
		})
	}
	return group.Wait() //nolint:wrapcheck // Wrapped above.
}

// evenly returns the schedule of a constant rate per second, and the number of its requests within a time.
func evenly(rate float64, d time.Duration) (requests int, due func(n int) time.Duration) {
	return int(rate * d.Seconds()), func(n int) time.Duration {
		return time.Duration(float64(n) / rate * float64(time.Second))
	}
}
