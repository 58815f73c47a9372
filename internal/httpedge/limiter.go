package httpedge

import "sync"

// ConcurrencyLimiter limits how many requests of a key run at the same time.
type ConcurrencyLimiter struct {
	perKey int

	mu    sync.Mutex
	byKey map[string]int
}

// NewConcurrencyLimiter makes a limiter.
func NewConcurrencyLimiter(perKey int) *ConcurrencyLimiter {
	return &ConcurrencyLimiter{perKey: perKey, byKey: map[string]int{}}
}

// Acquire admits a request of a key until release is called. ok is false, and release nil, at the limit.
func (l *ConcurrencyLimiter) Acquire(keyID string) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[keyID] >= l.perKey {
		return nil, false
	}
	l.byKey[keyID]++
	return func() { l.release(keyID) }, true
}

// Running returns how many requests of a key run now.
func (l *ConcurrencyLimiter) Running(keyID string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byKey[keyID]
}

func (l *ConcurrencyLimiter) release(keyID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[keyID]--; l.byKey[keyID] == 0 {
		delete(l.byKey, keyID)
	}
}
