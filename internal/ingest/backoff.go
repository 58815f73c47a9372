package ingest

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// leastPause is short enough for a failover to go unnoticed.
	leastPause = 200 * time.Millisecond
	// mostPause is how long a worker may sleep past the return of what was away.
	mostPause = 10 * time.Second
)

// backoff is the pause after failures in a row: it doubles, and is jittered so
// that many workers do not come back in the same moment.
type backoff struct{ failures int }

func (b *backoff) reset() { b.failures = 0 }

// next is the pause after one more failure.
func (b *backoff) next() time.Duration {
	most := min(leastPause<<min(b.failures, 10), mostPause)
	b.failures++
	return most/2 + rand.N(most/2) //nolint:gosec // A pause is no secret.
}

// sleep returns after a pause, or earlier when ctx ends.
func sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
