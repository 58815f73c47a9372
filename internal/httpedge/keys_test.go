package httpedge

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// keys are stored keys by their ids.
type keys map[string]roomsensor.Key

func (k keys) query(_ context.Context, ids []string) (found []roomsensor.Key, err error) {
	for _, id := range ids {
		if key, ok := k[id]; ok {
			found = append(found, key)
		}
	}
	return found, nil
}

// A refused key costs the same number of hashes and comparisons, whatever the reason, also if it is sent again
// (decision 24).
func TestAuthenticatorComparisons(t *testing.T) {
	t.Parallel()
	past := time.Unix(0, 0)
	now := func() time.Time { return past }
	stored := keys{}
	add := func(key roomsensor.Key) (text, wrong string) {
		key.ID, text, key.SecretSHA256 = roomsensor.GenerateKey(roomsensor.APIKey)
		stored[key.ID] = key
		return text, roomsensor.FormatKey(roomsensor.APIKey, key.ID, "wrong")
	}
	good, wrong := add(roomsensor.Key{})
	revoked, wrongRevoked := add(roomsensor.Key{RevokedAt: &past})
	expired, wrongExpired := add(roomsensor.Key{ExpiresAt: &past})
	_, unknown, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	a := NewAuthenticator(NewKeyCache(stored.query, now), APIKeyCodes(), now)
	comparisons := 0
	a.matches = func(key *roomsensor.Key, secret string) bool {
		comparisons++
		return key.Matches(secret)
	}
	for _, want := range []int{2, 1, 1} {
		_, err := a.Authenticate(t.Context(), good) // The cache has it from here on.
		require.NoError(t, err)
		for _, text := range []string{unknown, wrong, revoked, wrongRevoked, expired, wrongExpired} {
			comparisons = 0
			_, err := a.Authenticate(t.Context(), text)
			require.Error(t, err, text)
			require.Equal(t, want, comparisons, text)
		}
	}
}

// A panic of the store is an error of the request and does not end the process.
func TestKeyCachePanic(t *testing.T) {
	t.Parallel()
	cache := NewKeyCache(func(context.Context, []string) ([]roomsensor.Key, error) { panic("a bug") }, time.Now)
	_, err := NewAuthenticator(cache, APIKeyCodes(), time.Now).Authenticate(t.Context(), roomsensor.FormatKey(roomsensor.APIKey, "id", "secret"))
	require.EqualError(t, err, "panic: a bug")
}

// slowKey is a stored key whose lookup takes a second.
type slowKey struct {
	keys
	err     error
	queries int
}

// newSlowKey returns the key, its text, and an authenticator over a KeyCache.
func newSlowKey() (stored *slowKey, text string, auth *Authenticator) {
	id, text, sum := roomsensor.GenerateKey(roomsensor.APIKey)
	stored = &slowKey{keys: keys{id: {ID: id, SecretSHA256: sum}}}
	return stored, text, NewAuthenticator(NewKeyCache(stored.query, time.Now), APIKeyCodes(), time.Now)
}

func (s *slowKey) query(ctx context.Context, ids []string) ([]roomsensor.Key, error) {
	s.queries++
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Second):
	}
	if s.err != nil {
		return nil, s.err
	}
	return s.keys.query(ctx, ids)
}

// Made-up keys share queries, and a key that comes after 2,000 of them waits for their queries only.
func TestKeyCacheFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stored, text, auth := newSlowKey()
		const flood = 2000
		refused := make(chan error, flood)
		for range flood {
			go func() {
				_, unknown, _ := roomsensor.GenerateKey(roomsensor.APIKey)
				_, err := auth.Authenticate(t.Context(), unknown)
				refused <- err
			}()
		}
		synctest.Wait()
		_, err := auth.Authenticate(t.Context(), text)
		require.NoError(t, err)
		for range flood {
			require.ErrorContains(t, <-refused, string(roomsensor.CodeAPIKeyInvalid))
		}
		require.LessOrEqual(t, stored.queries, 1+flood/keyLookupIDs+1)
	})
}

// Queries for keys are at least 5 ms apart, however fast the database is.
func TestKeyLookupInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		queries := 0
		lookups := newKeyLookups(func(context.Context, []string) ([]roomsensor.Key, error) { queries++; return nil, nil })
		began := time.Now()
		for time.Since(began) < time.Second {
			_, err := lookups.find(t.Context(), "unknown")
			require.ErrorIs(t, err, roomsensor.ErrNotFound)
		}
		require.LessOrEqual(t, queries, 201)
	})
}

// A refused key that is sent again costs no query, but it is not remembered for longer than 5 seconds (decision 43).
func TestRefusalAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stored, _, auth := newSlowKey()
		id, text, sum := roomsensor.GenerateKey(roomsensor.APIKey)
		for range 100 {
			_, err := auth.Authenticate(t.Context(), text)
			require.Error(t, err)
		}
		require.Equal(t, 1, stored.queries)
		stored.keys[id] = roomsensor.Key{ID: id, SecretSHA256: sum} // As with SQL: the service creates no text twice.
		time.Sleep(5 * time.Second)
		_, err := auth.Authenticate(t.Context(), text)
		require.NoError(t, err)
	})
}

func TestKeyCacheSharedLookup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stored, text, auth := newSlowKey()
		const requests = 8
		results := make(chan error, requests)
		for range requests {
			go func() {
				_, err := auth.Authenticate(t.Context(), text)
				results <- err
			}()
		}
		for range requests {
			require.NoError(t, <-results)
		}
		_, err := auth.Authenticate(t.Context(), text)
		require.NoError(t, err)
		require.Equal(t, 1, stored.queries, "a request after the lookup finds the cached key")
	})
}

// A lookup does not end with the request that started it.
func TestKeyCacheCanceledRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stored, text, auth := newSlowKey()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := auth.Authenticate(ctx, text)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = auth.Authenticate(t.Context(), text)
		require.NoError(t, err)
		require.Equal(t, 1, stored.queries)
	})
}

// Without a database, a cached key works until it is too old for a revoke to take effect within 5 seconds.
func TestKeyCacheUnavailable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stored, text, auth := newSlowKey()
		_, err := auth.Authenticate(t.Context(), text)
		require.NoError(t, err)
		stored.err = roomsensor.CodeOverloaded.New()
		_, err = auth.Authenticate(t.Context(), text)
		require.NoError(t, err)
		time.Sleep(5*time.Second - keyLookupTimeout)
		_, err = auth.Authenticate(t.Context(), text)
		require.ErrorIs(t, err, stored.err)
	})
}
