package httpedge

import (
	"context"
	"sync"
	"time"

	"roomsensor/internal/roomsensor"
)

const (
	// keyAge is how old a key in memory may be. A revoke takes effect within 5 seconds (decision 24); the rest of them
	// is left for a slow lookup.
	keyAge = 2 * time.Second
	// maxCachedKeys bounds the memory of a KeyCache; a key takes about 300 bytes.
	maxCachedKeys = 10_000
)

// KeyCache looks up each key when it is asked for and keeps it for keyAge. The API uses it: there may be many keys, and
// without the database there is nothing to answer.
type KeyCache struct {
	lookups *keyLookups
	now     func() time.Time

	mu     sync.Mutex
	cached map[string]cachedKey
}

type cachedKey struct {
	key    roomsensor.Key
	readAt time.Time // when the lookup began
}

// NewKeyCache makes an empty cache.
func NewKeyCache(query KeyQuery, now func() time.Time) *KeyCache {
	k := &KeyCache{now: now, cached: map[string]cachedKey{}}
	k.lookups = newKeyLookups(func(ctx context.Context, ids []string) ([]roomsensor.Key, error) {
		readAt := now()
		keys, err := query(ctx, ids)
		k.store(keys, readAt)
		return keys, err
	})
	return k
}

// Cached implements KeySource.
func (k *KeyCache) Cached(id string) (roomsensor.Key, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	cached, ok := k.cached[id]
	if !ok || k.now().Sub(cached.readAt) > keyAge {
		return roomsensor.Key{}, false
	}
	return cached.key, true
}

// Find implements KeySource. It always looks the key up.
func (k *KeyCache) Find(ctx context.Context, id string) (roomsensor.Key, error) {
	return k.lookups.find(ctx, id)
}

func (k *KeyCache) store(keys []roomsensor.Key, readAt time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.cached)+len(keys) > maxCachedKeys {
		clear(k.cached) // Each key is read again when it is asked for.
	}
	for i := range keys {
		k.cached[keys[i].ID] = cachedKey{key: keys[i], readAt: readAt}
	}
}
