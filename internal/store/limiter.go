package store

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

// limiterTimeout bounds a statement that counts; who waits for it may have less
// time, and leaves it to the others.
const limiterTimeout = 5 * time.Second

// limiter counts requests against the limits of their keys. Those that come
// while a statement is under way are counted together by the next one: alone
// each is counted at once, and the busier a replica is, the less each of them
// costs.
type limiter struct {
	count func(ctx context.Context, keyIDs []string) ([]db.RateWindowHitsRow, error) // ascending ids

	mu       sync.Mutex
	counting bool
	waiting  []*hit
}

// hit is a request that is to be counted.
type hit struct {
	keyID   string
	verdict roomsensor.RateVerdict
	err     error
	counted chan struct{}
}

// hit counts one request, or denies it. A request that leaves before it was
// counted is counted all the same.
func (l *limiter) hit(ctx context.Context, keyID string) (roomsensor.RateVerdict, error) {
	h := &hit{keyID: keyID, counted: make(chan struct{})}
	if l.begin(h) {
		l.countAll(context.WithoutCancel(ctx), []*hit{h})
		if rest := l.end(); rest != nil {
			go l.countOn(context.WithoutCancel(ctx), rest)
		}
	}
	select {
	case <-h.counted:
		return h.verdict, h.err
	case <-ctx.Done():
		return roomsensor.RateVerdict{}, ctx.Err()
	}
}

// begin says whether a request is to be counted by who brings it; else it waits
// for the statement that is under way.
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

// end gives out those that came during a statement; nil where none did.
func (l *limiter) end() []*hit {
	l.mu.Lock()
	defer l.mu.Unlock()
	hits := l.waiting
	l.waiting = nil
	l.counting = hits != nil
	return hits
}

// countOn counts until nobody waits.
func (l *limiter) countOn(ctx context.Context, hits []*hit) {
	for ; hits != nil; hits = l.end() {
		l.countAll(ctx, hits)
	}
}

// countAll counts requests in one statement, which locks their keys in the order
// of their bytes, as on every replica.
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
		err = fmt.Errorf("counting %d requests gave %d rows", len(hits), len(rows))
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
