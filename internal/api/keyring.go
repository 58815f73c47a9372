package api

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"roomsensor/internal/roomsensor"
)

const (
	// keyAge is how long a key is kept in memory: a revoke bites within 5
	// seconds (decision 24), which leaves time for a slow look-up.
	keyAge = 2 * time.Second
	// keyLookup bounds one look-up, which many requests may wait for.
	keyLookup = 3 * time.Second
	// mostKeys bounds the memory; a key takes some 300 bytes.
	mostKeys = 10_000
	// longestKeyID is far beyond those that the service makes; a longer one is
	// not looked up.
	longestKeyID = 128
)

// keyring finds keys and keeps them for a moment, but answers from memory only
// where that lets a request in: what is refused was looked up. So a key that
// was just made, or given more time, works at once.
type keyring struct {
	keys    Keys
	now     func() time.Time
	matches func(key *roomsensor.Key, secret string) bool
	flights singleflight.Group

	mu   sync.Mutex
	kept map[string]keptKey
}

type keptKey struct {
	key    roomsensor.Key
	readAt time.Time
}

func newKeyring(keys Keys, now func() time.Time) *keyring {
	return &keyring{keys: keys, now: now, matches: (*roomsensor.Key).Matches, kept: map[string]keptKey{}}
}

// authenticate finds the key that a text is, or says why it is none. An
// unknown key costs the same look-up and the same comparisons as a wrong
// secret, whether or not a key of that id is in memory (decision 24).
func (k *keyring) authenticate(ctx context.Context, text string) (roomsensor.Key, error) {
	id, secret, ok := roomsensor.ParseKey(roomsensor.APIKey, text)
	ok = ok && len(id) <= longestKeyID
	key, kept := k.recent(id)
	if k.judge(&key, secret) == nil {
		return key, nil
	}
	key = roomsensor.Key{}
	if ok {
		found, err := k.find(ctx, id, kept)
		if err != nil && !errors.Is(err, roomsensor.ErrNotFound) {
			return roomsensor.Key{}, err
		}
		key = found
	}
	if err := k.judge(&key, secret); err != nil {
		return roomsensor.Key{}, err
	}
	return key, nil
}

// judge says why a key lets nobody in. Revoke and expiry are told only to who
// knows the secret.
func (k *keyring) judge(key *roomsensor.Key, secret string) error {
	switch {
	case !k.matches(key, secret):
		return roomsensor.CodeAPIKeyInvalid.New()
	case key.RevokedAt != nil:
		return roomsensor.CodeAPIKeyRevoked.New()
	case key.ExpiresAt != nil && !k.now().Before(*key.ExpiresAt):
		return roomsensor.CodeAPIKeyExpired.New()
	}
	return nil
}

// find looks a key up. One look-up serves all that wait for it, so it must not
// end with the request that happened to come first. anew says that what is in
// memory was seen and does not do.
func (k *keyring) find(ctx context.Context, id string, anew bool) (roomsensor.Key, error) {
	flight := k.flights.DoChan(id, func() (any, error) {
		if key, ok := k.recent(id); ok && !anew {
			return key, nil // The flight before ended in between.
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyLookup)
		defer cancel()
		readAt := k.now()
		key, err := k.keys.APIKey(ctx, id)
		if err == nil {
			k.keep(key, readAt)
		}
		return key, err
	})
	select {
	case <-ctx.Done():
		return roomsensor.Key{}, ctx.Err()
	case result := <-flight:
		key, _ := result.Val.(roomsensor.Key)
		return key, result.Err
	}
}

func (k *keyring) recent(id string) (roomsensor.Key, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept, ok := k.kept[id]
	if !ok || k.now().Sub(kept.readAt) > keyAge {
		return roomsensor.Key{}, false
	}
	return kept.key, true
}

// keep remembers a key as it was read at an instant before the look-up.
func (k *keyring) keep(key roomsensor.Key, readAt time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.kept) >= mostKeys {
		clear(k.kept) // Each is read again when it is asked for.
	}
	k.kept[key.ID] = keptKey{key: key, readAt: readAt}
}
