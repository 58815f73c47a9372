package teamcache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/teamcache"
)

const maxReads, maxBytes = 8, 900

// value counts the reads of its team.
type value struct {
	reads  int
	readAt time.Time
}

func team(n byte) uuid.UUID { return uuid.UUID{n} }

func newCache(read teamcache.Config[value]) *teamcache.Cache[value] {
	read.Timeout, read.MaxReads, read.MaxBytes = time.Minute, maxReads, maxBytes
	return teamcache.New(read)
}

func anyValue(*value) bool { return true }

// Many teams that ask at the same moment leave connections for other requests.
func TestCacheReadsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, proceed := make(chan struct{}, 2*maxReads), make(chan struct{})
		cache := newCache(teamcache.Config[value]{
			Read: func(context.Context, uuid.UUID, *value) (teamcache.Entry[value], error) {
				begun <- struct{}{}
				<-proceed
				return teamcache.Entry[value]{Value: &value{}}, nil
			},
		})
		for n := range byte(2 * maxReads) {
			go func() { _, _ = cache.Get(t.Context(), team(n), anyValue) }()
		}
		synctest.Wait()
		require.Len(t, begun, maxReads)
		proceed <- struct{}{}
		synctest.Wait()
		require.Len(t, begun, maxReads+1)
		close(proceed)
		synctest.Wait()
		require.Len(t, begun, 2*maxReads)
	})
}

// One read serves all that wait. One that needs a later value than a running read waits for the next.
func TestCacheSharesReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const duration = 10 * time.Second
		cache := newCache(teamcache.Config[value]{
			Read: func(_ context.Context, _ uuid.UUID, last *value) (teamcache.Entry[value], error) {
				next := &value{reads: 1, readAt: time.Now()}
				if last != nil {
					next.reads += last.reads
				}
				time.Sleep(duration)
				return teamcache.Entry[value]{Value: next, Until: time.Now().Add(time.Hour)}, nil
			},
		})
		begin := time.Now()
		for n, want := range []int{1, 2, 2} {
			oldest := time.Now()
			if n == 0 {
				oldest = begin
			}
			go func() {
				got, err := cache.Get(t.Context(), team(0), func(v *value) bool { return !v.readAt.Before(oldest) })
				if err != nil || got.reads != want {
					t.Errorf("number %d got %v, %v", n, got, err)
				}
			}()
			time.Sleep(time.Second)
		}
		time.Sleep(3 * duration)
	})
}

// An error goes to those who wait for the read and is not kept, and a panic ends nothing but the read.
func TestCacheErrors(t *testing.T) {
	t.Parallel()
	failures := []error{errors.New("unavailable"), nil}
	cache := newCache(teamcache.Config[value]{
		Read: func(context.Context, uuid.UUID, *value) (entry teamcache.Entry[value], err error) {
			if len(failures) == 0 {
				return teamcache.Entry[value]{Value: &value{reads: 1}}, nil
			}
			err, failures = failures[0], failures[1:]
			if err == nil {
				panic("broken")
			}
			return entry, err
		},
	})
	_, err := cache.Get(t.Context(), team(0), anyValue)
	require.ErrorContains(t, err, "unavailable")
	_, err = cache.Get(t.Context(), team(0), anyValue)
	require.ErrorContains(t, err, "panic: broken")
	got, err := cache.Get(t.Context(), team(0), anyValue)
	require.NoError(t, err)
	require.Equal(t, 1, got.reads)
}
