package httpedge

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/singleflight"

	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

const (
	// keyAge is how old a key in memory may be. A revoke takes effect within 5 seconds (decision 24); the rest of them
	// is left for a slow lookup.
	keyAge = 2 * time.Second
	// maxCachedKeys bounds the memory of a KeyCache; a key takes about 300 bytes.
	maxCachedKeys = 10_000
	// keyListTimeout bounds one load of a KeyList, so that a request with an unknown key does not wait for a database
	// that does not respond.
	keyListTimeout = 2 * time.Second
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

// KeyList keeps all keys in memory and reads them again every keyAge. While the database is unavailable it goes on with
// the keys that it knows. The receiver uses it: there are few ingest keys, and uploads must go on without the database.
type KeyList struct {
	load    func(ctx context.Context) ([]roomsensor.Key, error)
	log     zerolog.Logger
	flights singleflight.Group

	mu       sync.Mutex
	byID     map[string]roomsensor.Key
	loadedAt time.Time // when the last successful load began
	failedAt time.Time // when the last load failed; zero after a successful one
}

// NewKeyList makes an empty list. load returns all keys, including revoked ones.
func NewKeyList(load func(ctx context.Context) ([]roomsensor.Key, error), log zerolog.Logger) *KeyList {
	return &KeyList{load: load, log: log}
}

// Run loads the keys at once and then every keyAge, until ctx ends.
func (l *KeyList) Run(ctx context.Context) {
	retry.Every(ctx, keyAge, func(ctx context.Context) {
		if err := l.refresh(ctx, time.Now()); err != nil && ctx.Err() == nil {
			l.log.Debug().Err(err).Msg("could not load the ingest keys; using those in memory")
		}
	})
}

// Cached implements KeySource.
func (l *KeyList) Cached(id string) (roomsensor.Key, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key, ok := l.byID[id]
	return key, ok
}

// Find implements KeySource. For an unknown key it loads the list again, so that a new key works at once. Its error is
// overloaded if the database is unavailable.
func (l *KeyList) Find(ctx context.Context, id string) (roomsensor.Key, error) {
	if key, ok := l.Cached(id); ok {
		return key, nil
	}
	if l.failing() {
		return roomsensor.Key{}, errKeyUnchecked()
	}
	if err := l.refresh(ctx, time.Now()); err != nil {
		if panicked, ok := errors.AsType[*PanicError](err); ok {
			return roomsensor.Key{}, panicked
		}
		return roomsensor.Key{}, errKeyUnchecked()
	}
	if key, ok := l.Cached(id); ok {
		return key, nil
	}
	return roomsensor.Key{}, roomsensor.ErrNotFound
}

func errKeyUnchecked() *roomsensor.Error {
	return Overloaded(keyAge,
		"The credential cannot be checked right now. Send the request again after the seconds in Retry-After.")
}

// failing reports whether a load failed so recently that another one is not worth the wait.
func (l *KeyList) failing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.failedAt.IsZero() && time.Since(l.failedAt) < keyAge
}

// refresh loads the list, or waits for a load that is running. It loads once more if that one began before asOf and so
// may lack a key that existed at asOf.
func (l *KeyList) refresh(ctx context.Context, asOf time.Time) error {
	for {
		flight := l.flights.DoChan("", func() (any, error) { return nil, l.read(ctx) })
		select {
		case <-ctx.Done():
			return ctx.Err()
		case result := <-flight:
			if result.Err != nil || l.loadedSince(asOf) {
				return result.Err
			}
		}
	}
}

func (l *KeyList) loadedSince(asOf time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.loadedAt.Before(asOf)
}

func (l *KeyList) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyListTimeout)
	defer cancel()
	began := time.Now()
	var keys []roomsensor.Key
	err := Recover(func() (err error) { // singleflight would end the process on a panic.
		keys, err = l.load(ctx)
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failedAt = time.Now()
		return err
	}
	l.byID = make(map[string]roomsensor.Key, len(keys))
	for i := range keys {
		l.byID[keys[i].ID] = keys[i]
	}
	l.loadedAt, l.failedAt = began, time.Time{}
	return nil
}
