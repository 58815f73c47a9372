package store

// The file is named in the singular because Go would build rate_windows.go on Windows only.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// CountRequest counts a request of an API key, or denies it (decision 25).
func (s *Store) CountRequest(ctx context.Context, keyID string) (roomsensor.RateVerdict, error) {
	verdict, err := s.limiter.hit(ctx, keyID)
	if err != nil {
		return roomsensor.RateVerdict{}, fmt.Errorf("counting a request: %w", translate(err))
	}
	return verdict, nil
}

// limiterTimeout bounds a statement that counts requests. A request may have less time; it leaves and the others wait.
const limiterTimeout = 5 * time.Second

// limiter counts requests against the limits of their keys. Requests that arrive while a statement runs are counted
// together by the next statement. A single request is counted at once, and under load each request costs less.
type limiter struct {
	count func(ctx context.Context, keyIDs []string) ([]db.RateWindowHitRow, error) // keyIDs ascend

	mu       sync.Mutex
	counting bool
	waiting  []*hit
}

// hit is a request to be counted.
type hit struct {
	keyID   string
	verdict roomsensor.RateVerdict
	err     error
	counted chan struct{} // closed when verdict and err are set
}

// hit counts or denies one request. If ctx ends before, the request is counted nevertheless.
func (l *limiter) hit(ctx context.Context, keyID string) (roomsensor.RateVerdict, error) {
	h := &hit{keyID: keyID, counted: make(chan struct{})}
	if l.begin(h) {
		l.countAll(context.WithoutCancel(ctx), []*hit{h})
		if rest := l.end(); rest != nil {
			go l.countUntilIdle(context.WithoutCancel(ctx), rest)
		}
	}
	select {
	case <-h.counted:
		return h.verdict, h.err
	case <-ctx.Done():
		return roomsensor.RateVerdict{}, ctx.Err()
	}
}

// begin reports whether the caller becomes the leader and must count h itself. Otherwise the leader counts h after the
// statement that is running.
func (l *limiter) begin(h *hit) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counting {
		l.waiting = append(l.waiting, h)
		return false
	}
	l.counting = true
	return true
}

// end returns the requests that arrived during a statement. If there are none it returns nil, and there is no leader
// any more.
func (l *limiter) end() []*hit {
	l.mu.Lock()
	defer l.mu.Unlock()
	hits := l.waiting
	l.waiting = nil
	l.counting = hits != nil
	return hits
}

// countUntilIdle counts requests until none is waiting.
func (l *limiter) countUntilIdle(ctx context.Context, hits []*hit) {
	for ; hits != nil; hits = l.end() {
		l.countAll(ctx, hits)
	}
}

// countAll counts requests in one statement. It sorts them by key, because all replicas must lock keys in one order.
func (l *limiter) countAll(ctx context.Context, hits []*hit) {
	ctx, cancel := context.WithTimeout(ctx, limiterTimeout)
	defer cancel()
	slices.SortStableFunc(hits, func(a, b *hit) int { return strings.Compare(a.keyID, b.keyID) })
	keys := make([]string, len(hits))
	for i, h := range hits {
		keys[i] = h.keyID
	}
	rows, err := l.count(ctx, keys)
	if err == nil && len(rows) != len(hits) {
		err = fmt.Errorf("counting %d requests returned %d rows", len(hits), len(rows))
	}
	for i, h := range hits {
		if h.err = err; err == nil {
			h.verdict = roomsensor.RateVerdict{
				Allowed:   rows[i].Allowed,
				Remaining: int(rows[i].Remaining),
				Reset:     time.Duration(rows[i].ResetSeconds * float64(time.Second)),
			}
		}
		close(h.counted)
	}
}
