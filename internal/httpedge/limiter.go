package httpedge

import "sync"

// ConcurrencyLimiter limits how many requests run at the same time, per key and in total.
type ConcurrencyLimiter struct {
	perKey, total int

	mu      sync.Mutex
	byKey   map[string]int
	running int
}

// NewConcurrencyLimiter makes a limiter. A total of 0 means that only the number per key is limited.
func NewConcurrencyLimiter(perKey, total int) *ConcurrencyLimiter {
	return &ConcurrencyLimiter{perKey: perKey, total: total, byKey: map[string]int{}}
}

// Acquire admits a request of a key until release is called. ok is false, and release nil, at the limit.
func (l *ConcurrencyLimiter) Acquire(keyID string) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[keyID] >= l.perKey || (l.total > 0 && l.running >= l.total) {
		return nil, false
	}
	l.byKey[keyID]++
	l.running++
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
	l.running--
	if l.byKey[keyID]--; l.byKey[keyID] == 0 {
		delete(l.byKey, keyID)
	}
}
