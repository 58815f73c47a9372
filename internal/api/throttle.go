package api

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"roomsensor/internal/problem"
	"roomsensor/internal/roomsensor"
)

// denialAge is how long a denial is answered from memory. It lasts longer than
// that, as a rule, but no copy of what is stored may be older than 5 seconds
// (decision 43).
const denialAge = 4 * time.Second

// mostDenials bounds the memory; those that have passed are dropped there.
const mostDenials = 10_000

// throttle applies the rate limit (decision 25). The count is the database's;
// a key that was denied is remembered, so that further requests of it cost no
// work there.
type throttle struct {
	limiter Limiter
	now     func() time.Time

	mu     sync.Mutex
	denied map[string]denial
}

type denial struct {
	until time.Time // when a request would pass
	stale time.Time // when to ask again
}

func newThrottle(limiter Limiter, now func() time.Time) *throttle {
	return &throttle{limiter: limiter, now: now, denied: map[string]denial{}}
}

// count counts a request and sets the headers that every authenticated answer
// carries; the error is rate_limit_exceeded when it may not pass.
func (t *throttle) count(ctx context.Context, h http.Header, keyID string) error {
	verdict, err := t.verdict(ctx, keyID)
	if err != nil {
		return err
	}
	h.Set("RateLimit-Limit", strconv.Itoa(roomsensor.RateLimit))
	h.Set("RateLimit-Remaining", strconv.Itoa(verdict.Remaining))
	h.Set("RateLimit-Reset", problem.Seconds(verdict.Reset))
	if verdict.Allowed {
		return nil
	}
	refusal := roomsensor.CodeRateLimitExceeded.New()
	refusal.RetryAfter = verdict.Reset
	return refusal
}

func (t *throttle) verdict(ctx context.Context, keyID string) (roomsensor.RateVerdict, error) {
	if wait, ok := t.remembered(keyID); ok {
		return roomsensor.RateVerdict{Reset: wait}, nil
	}
	verdict, err := t.limiter.CountRequest(ctx, keyID)
	if err == nil && !verdict.Allowed {
		t.remember(keyID, verdict.Reset)
	}
	return verdict, err
}

// remembered is the time that a denied key still has to wait.
func (t *throttle) remembered(keyID string) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d, ok := t.denied[keyID]
	now := t.now()
	if !ok || !now.Before(d.stale) {
		delete(t.denied, keyID)
		return 0, false
	}
	return d.until.Sub(now), true
}

func (t *throttle) remember(keyID string, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if len(t.denied) >= mostDenials {
		for id, d := range t.denied {
			if !now.Before(d.stale) {
				delete(t.denied, id)
			}
		}
	}
	t.denied[keyID] = denial{until: now.Add(wait), stale: now.Add(min(wait, denialAge))}
}
