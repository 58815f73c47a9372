package ingest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func watching(t *testing.T, shelf KeyStore) *credentials {
	t.Helper()
	c := newCredentials(shelf, zerolog.Nop())
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go c.run(ctx)
	synctest.Wait()
	return c
}

func codeOf(e *roomsensor.Error) roomsensor.Code {
	if e == nil {
		return ""
	}
	return e.Code
}

// Decision 24: a revoke bites within 5 seconds.
func TestARevokeBitesWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := &keyShelf{}
		_, text := shelf.add(uuid.New(), false)
		c := watching(t, shelf)
		_, refusal := c.authenticate(t.Context(), []string{"Bearer " + text})
		require.Nil(t, refusal)
		shelf.revokeAll()
		pass(5*time.Second - reloadTimeout)
		_, refusal = c.authenticate(t.Context(), []string{"Bearer " + text})
		require.Equal(t, roomsensor.CodeIngestKeyRevoked, codeOf(refusal))
	})
}

func TestAnAbsentDatabaseIsAskedRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := &keyShelf{away: true}
		_, text := shelf.add(uuid.New(), false)
		c := watching(t, shelf)
		for range 1000 {
			_, refusal := c.authenticate(t.Context(), []string{"Bearer " + text})
			require.Equal(t, roomsensor.CodeOverloaded, codeOf(refusal))
		}
		require.Equal(t, 1, shelf.loads)
		shelf.setAway(false)
		pass(reloadEvery)
		synctest.Wait()
		_, refusal := c.authenticate(t.Context(), []string{"Bearer " + text})
		require.Nil(t, refusal)
	})
}

// Who waits for a lookup that fails does not wait for the same once more.
func TestUnknownCredentialsAtOnceShareAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := watching(t, silentShelf{})
		_, unknown, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
		pass(time.Millisecond)
		started := time.Now()
		codes := make(chan roomsensor.Code, 100)
		for range cap(codes) {
			go func() {
				_, refusal := c.authenticate(t.Context(), []string{"Bearer " + unknown})
				codes <- codeOf(refusal)
			}()
		}
		for range cap(codes) {
			require.Equal(t, roomsensor.CodeOverloaded, <-codes)
		}
		require.LessOrEqual(t, time.Since(started), reloadTimeout)
	})
}

// silentShelf is a database that takes questions and answers none.
type silentShelf struct{}

func (silentShelf) IngestKeys(ctx context.Context) ([]roomsensor.Key, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestUnknownCredentialsAtOnceShareALookup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := &slowShelf{}
		c := watching(t, shelf)
		pass(reloadEvery / 2)
		_, unknown, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
		codes := make(chan roomsensor.Code, 100)
		for range cap(codes) {
			go func() {
				_, refusal := c.authenticate(t.Context(), []string{"Bearer " + unknown})
				codes <- codeOf(refusal)
			}()
		}
		for range cap(codes) {
			require.Equal(t, roomsensor.CodeIngestKeyInvalid, <-codes)
		}
		require.Equal(t, 2, shelf.loads, "one at the start, one for all of them")
	})
}

// slowShelf has no keys and takes its time to say so.
type slowShelf struct{ loads int }

func (s *slowShelf) IngestKeys(context.Context) ([]roomsensor.Key, error) {
	s.loads++
	pass(100 * time.Millisecond)
	return nil, nil
}

func TestACredentialHasSoManyPlaces(t *testing.T) {
	t.Parallel()
	p := newPlaces()
	for range maxPerKey {
		require.True(t, p.enter("a"))
	}
	require.False(t, p.enter("a"))
	require.True(t, p.enter("b"))
	p.leave("a")
	require.True(t, p.enter("a"))
	for range maxPerKey {
		p.leave("a")
	}
	p.leave("b")
	require.Empty(t, p.taken)
}
