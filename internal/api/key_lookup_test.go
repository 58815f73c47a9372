package api_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/roomsensor"
)

// countingKeys counts look-ups, and can hold them up or fail them.
type countingKeys struct {
	api.Backend
	lookups atomic.Int64
	during  func(ctx context.Context) error
}

func (c *countingKeys) APIKey(ctx context.Context, id string) (roomsensor.Key, error) {
	c.lookups.Add(1)
	if c.during != nil {
		if err := c.during(ctx); err != nil {
			return roomsensor.Key{}, err
		}
	}
	return c.Backend.APIKey(ctx, id)
}

func TestKeysAreKeptForAMoment(t *testing.T) {
	t.Parallel()
	f := setup(t)
	keys := &countingKeys{Backend: backend{f.store}}
	f.replica = f.serve(t, keys, nil)
	for range 5 {
		require.Equal(t, http.StatusOK, f.get(t, "/team").status)
	}
	require.Equal(t, int64(1), keys.lookups.Load())
	f.clock.advance(3 * time.Second)
	require.Equal(t, http.StatusOK, f.get(t, "/team").status)
	require.Equal(t, int64(2), keys.lookups.Load())
	for range 2 {
		f.get(t, "/team", withKey("rsk_nobody_x")).requireError(t, roomsensor.CodeAPIKeyInvalid, "")
	}
	require.Equal(t, int64(4), keys.lookups.Load(), "a key that is not there is not kept")
}

func TestOneLookUpServesAllThatWait(t *testing.T) {
	t.Parallel()
	f := setup(t)
	release := make(chan struct{})
	keys := &countingKeys{Backend: backend{f.store}, during: func(context.Context) error { <-release; return nil }}
	f.replica = f.serve(t, keys, nil)
	const clients = 8
	statuses := make(chan int, clients)
	for range clients {
		go func() { statuses <- f.try(t.Context(), http.MethodGet, "/v1/team", "", withKey(f.key)).status }()
	}
	require.Eventually(t, func() bool { return keys.lookups.Load() > 0 }, 5*time.Second, time.Millisecond)
	close(release)
	for range clients {
		require.Equal(t, http.StatusOK, <-statuses)
	}
	// Who came after the first look-up was over found the kept key.
	require.Equal(t, int64(1), keys.lookups.Load())
}

// A client that goes away takes nobody's look-up with it.
func TestLookUpOutlivesItsFirstClient(t *testing.T) {
	t.Parallel()
	f := setup(t)
	started, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var seen error
	keys := &countingKeys{Backend: backend{f.store}, during: func(ctx context.Context) error {
		once.Do(func() { close(started) })
		<-release
		seen = ctx.Err()
		return nil
	}}
	f.replica = f.serve(t, keys, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	require.ErrorIs(t, f.try(ctx, http.MethodGet, "/v1/team", "", withKey(f.key)).err, context.Canceled)
	require.Eventually(t, func() bool { return strings.Contains(f.log.String(), `"status":499`) }, 5*time.Second, time.Millisecond)
	close(release)
	require.Equal(t, http.StatusOK, f.get(t, "/team").status)
	require.NoError(t, seen)
}

// The database is away: 503, but not for a key that was just seen and not for
// longer than that.
func TestKeysWithoutDatabase(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var away atomic.Bool
	keys := &countingKeys{Backend: backend{f.store}, during: func(context.Context) error {
		if away.Load() {
			return roomsensor.CodeOverloaded.New()
		}
		return nil
	}}
	f.replica = f.serve(t, keys, nil)
	require.Equal(t, http.StatusOK, f.get(t, "/team").status)
	away.Store(true)
	require.Equal(t, http.StatusOK, f.get(t, "/team").status)
	f.clock.advance(5 * time.Second)
	got := f.get(t, "/team")
	got.requireError(t, roomsensor.CodeOverloaded, "")
	require.Regexp(t, `^[1-9]\d*$`, got.header.Get("Retry-After"))
}
