package store

import (
	"context"
	"sync"
)

// keyedLock lets one holder a key pass at a time. Waiters hold no connection:
// 99 requests with one Idempotency-Key must not drain the pool.
type keyedLock struct {
	mu   sync.Mutex
	held map[string]*keyHolders
}

type keyHolders struct {
	turn chan struct{}
	n    int // holder and waiters
}

// lock waits for its turn; release must be called when err is nil.
func (k *keyedLock) lock(ctx context.Context, key string) (release func(), err error) {
	k.mu.Lock()
	if k.held == nil {
		k.held = make(map[string]*keyHolders)
	}
	h := k.held[key]
	if h == nil {
		h = &keyHolders{turn: make(chan struct{}, 1)}
		k.held[key] = h
	}
	h.n++
	k.mu.Unlock()

	select {
	case h.turn <- struct{}{}:
		return func() { <-h.turn; k.leave(key, h) }, nil
	case <-ctx.Done():
		k.leave(key, h)
		return nil, ctx.Err()
	}
}

func (k *keyedLock) leave(key string, h *keyHolders) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.n--; h.n == 0 {
		delete(k.held, key)
	}
}
