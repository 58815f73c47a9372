// Package retry has the only sleep, repeat, poll and backoff of the module.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Sleep waits for a duration. It returns the error of ctx if that ends first, and at once if ctx has ended already.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return ctx.Err()
	}
}

// Every calls f at once and then once per interval, until ctx ends. A call that takes longer than the interval delays
// the next one; missed calls are not made up for.
func Every(ctx context.Context, interval time.Duration, f func(ctx context.Context)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		f(ctx)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// Until calls f at once and then once per interval, until it returns true or an error. It returns that error, or the
// error of ctx if that ends first.
func Until(ctx context.Context, interval time.Duration, f func(ctx context.Context) (done bool, err error)) error {
	for {
		done, err := f(ctx)
		if done || err != nil {
			return err
		}
		if err := Sleep(ctx, interval); err != nil {
			return err
		}
	}
}

// Backoff is an exponential backoff with jitter: the delay doubles from First up to Max, and a random part of up to one
// half is taken off, so that replicas do not return to a server at the same moment.
type Backoff struct {
	First, Max time.Duration
	// Random returns a number in [0, n); nil means one of math/rand. A simulation passes its own.
	Random func(n int64) int64
}

// Delay returns the delay after a failed attempt; the first attempt is 0.
func (b Backoff) Delay(attempt int) time.Duration {
	longest := b.Max
	if shift := max(attempt, 0); shift < 32 && b.First<<shift < b.Max {
		longest = b.First << shift
	}
	random := b.Random
	if random == nil {
		random = rand.Int64N
	}
	return longest - time.Duration(random(int64(longest/2+1)))
}

// Sleep waits for the delay after a failed attempt. It returns the error of ctx if that ends first.
func (b Backoff) Sleep(ctx context.Context, attempt int) error { return Sleep(ctx, b.Delay(attempt)) }
