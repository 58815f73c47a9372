package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// denialAge is the age up to which a denial is repeated from memory. A denial usually lasts longer, but nothing in
// memory may be older than 5 seconds (decision 43).
const denialAge = 4 * time.Second

// maxDenials is the number of denials in memory. The database is asked again about a key that does not fit.
const maxDenials = 10_000

// rateLimiter applies the rate limit (decision 25). The database counts. Denials are kept in memory, so that further
// requests of a denied key do not load the database.
type rateLimiter struct {
	limiter Limiter
	now     func() time.Time
	results *prometheus.CounterVec // decisions by result

	mu     sync.Mutex
	denied map[string]denial
}

type denial struct {
	until time.Time // when the key is admitted again
	stale time.Time // when the database must be asked again
}

func newRateLimiter(limiter Limiter, now func() time.Time, results *prometheus.CounterVec) *rateLimiter {
	return &rateLimiter{limiter: limiter, now: now, results: results, denied: map[string]denial{}}
}

// count counts a request and sets the headers of every authenticated response. It returns the position of the primary
// meanwhile. Its error is rate_limit_exceeded if the key has no requests left.
func (l *rateLimiter) count(ctx context.Context, h http.Header, keyID string) (roomsensor.Position, error) {
	verdict, err := l.verdict(ctx, keyID)
	if err != nil {
		return roomsensor.Position{}, err
	}
	h.Set("RateLimit-Limit", strconv.Itoa(roomsensor.RateLimit))
	h.Set("RateLimit-Remaining", strconv.Itoa(verdict.Remaining))
	h.Set("RateLimit-Reset", httpedge.Seconds(verdict.Reset))
	if verdict.Allowed {
		return verdict.Position, nil
	}
	return roomsensor.Position{}, &roomsensor.Error{
		Code: roomsensor.CodeRateLimitExceeded, RetryAfter: verdict.Reset, Limit: "rate",
		Message: fmt.Sprintf("This key made more than %d requests in 10 minutes. Wait %s, then send the request again.",
			roomsensor.RateLimit, httpedge.Wait(verdict.Reset)),
	}
}

// removeRateHeaders removes what count has set. A 401 has no such headers (decision 25 f).
func removeRateHeaders(h http.Header) {
	for _, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
		h.Del(name)
	}
}

func (l *rateLimiter) verdict(ctx context.Context, keyID string) (roomsensor.RateVerdict, error) {
	if wait, ok := l.remembered(keyID); ok {
		l.results.WithLabelValues(rateRemembered).Inc()
		return roomsensor.RateVerdict{Reset: wait}, nil
	}
	verdict, err := l.limiter.CountRequest(ctx, keyID)
	switch {
	case err != nil:
		l.results.WithLabelValues(rateFailed).Inc()
	case verdict.Allowed:
		l.results.WithLabelValues(rateAdmitted).Inc()
	default:
		l.results.WithLabelValues(rateDenied).Inc()
		l.remember(keyID, verdict.Reset)
	}
	return verdict, err
}

// remembered returns how long a denied key has to wait.
func (l *rateLimiter) remembered(keyID string) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.denied[keyID]
	now := l.now()
	if !ok || !now.Before(d.stale) {
		delete(l.denied, keyID)
		return 0, false
	}
	return d.until.Sub(now), true
}

func (l *rateLimiter) remember(keyID string, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if len(l.denied) >= maxDenials {
		for id := range l.denied { // Any one, because a search for an expired one would hold the lock for long.
			delete(l.denied, id)
			break
		}
	}
	l.denied[keyID] = denial{until: now.Add(wait), stale: now.Add(min(wait, denialAge))}
}
