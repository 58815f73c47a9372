package fairshare

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// requireRefused checks the limit and the message of a refusal.
func requireRefused(t *testing.T, err error, limit, message string) {
	t.Helper()
	var refusal *roomsensor.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, &roomsensor.Error{
		Code: roomsensor.CodeOverloaded, Message: message, RetryAfter: time.Second, Limit: limit,
	}, refusal)
}

func limit(most int, message string) Limit {
	return Limit{Most: most, RetryAfter: time.Second, Message: message}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	l := New(Config{Name: "x", Key: limit(2, "key"), Team: Limit{Most: 5}, Total: limit(8, "all")})
	a, b := Owner{uuid.UUID{1}, "a"}, Owner{uuid.UUID{1}, "b"}
	first, err := l.Try(a, 1)
	require.NoError(t, err)
	second, err := l.Try(a, 1)
	require.NoError(t, err)
	requireRefused(t, first.Grow(1), "x.key", "key")
	second.Release()
	second.Release() // It changes nothing.
	require.NoError(t, first.Grow(1))
	third, err := l.Try(b, 2)
	require.NoError(t, err)
	fourth, err := l.Try(Owner{uuid.UUID{1}, "c"}, 2)
	requireRefused(t, err, "x.team", "all")
	third.Keep(1)
	third.Keep(2) // It changes nothing.
	require.NoError(t, fourth.Grow(2))
	for i := range 2 {
		_, err = l.Try(Owner{uuid.UUID{2}, strconv.Itoa(i)}, 2-i)
		require.NoError(t, err)
	}
	_, err = l.Try(Owner{uuid.UUID{3}, "d"}, 1)
	requireRefused(t, err, "x.total", "all")
	require.Equal(t, 8, l.Used())
}

// A team gets half of what remains, and everything is free again after a release.
func TestRemaining(t *testing.T) {
	t.Parallel()
	l := New(Config{Name: "x", Team: Limit{Most: Remaining}, Total: limit(1000, "all")})
	var all []*Held
	fill := func(team byte) (n int) {
		for {
			h, err := l.Try(Owner{Team: uuid.UUID{team}}, 1)
			if err != nil {
				requireRefused(t, err, "x.team", "all")
				return n
			}
			all = append(all, h)
			n++
		}
	}
	require.Equal(t, 500, fill(1))
	require.Equal(t, 250, fill(0), "a team with the id zero is one as any other")
	for _, h := range all {
		h.Release()
	}
	require.Empty(t, l.byWhom)
}

// A request waits for those of its team, and no others do. One that needs less may go first. When ctx ends, it is
// refused.
func TestAcquire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Name: "x", Team: limit(10, "team"), Total: limit(20, "all")})
		acquire := func(team byte, amount int) *Held {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			h, err := l.Acquire(ctx, Owner{Team: uuid.UUID{team}}, amount)
			if err != nil {
				requireRefused(t, err, "x.team", "team")
			}
			return h
		}
		first, second := acquire(1, 9), make(chan *Held)
		go func() { second <- acquire(1, 2) }()
		synctest.Wait()
		require.Equal(t, 1, l.Waiting())
		acquire(1, 1).Release()
		acquire(2, 10).Release()
		require.Empty(t, second)
		first.Keep(8)
		h := <-second
		began := time.Now()
		require.Nil(t, acquire(1, 1))
		require.Equal(t, time.Second, time.Since(began))
		first.Release()
		h.Release()
		require.Empty(t, l.byWhom)
		require.Empty(t, l.waiting)
	})
}

// Requests that wait are limited by key, by team and in all. The others are refused at once.
func TestWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limited := func(waiting int) Limit {
			return Limit{Most: 1, Waiting: waiting, RetryAfter: time.Second, Message: "m"}
		}
		l := New(Config{Name: "x", Key: limited(1), Team: limited(2), Total: limited(3)})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		acquire := func(o Owner) { _, _ = l.Acquire(ctx, o, 1) }
		acquire(Owner{uuid.UUID{1}, "a"})
		for _, test := range []struct {
			waits, refused Owner
			limit          string
		}{
			{Owner{uuid.UUID{1}, "a"}, Owner{uuid.UUID{1}, "a"}, "x.key_waiting"},
			{Owner{uuid.UUID{1}, "b"}, Owner{uuid.UUID{1}, "c"}, "x.team_waiting"},
			{Owner{uuid.UUID{2}, "d"}, Owner{uuid.UUID{3}, "e"}, "x.total_waiting"},
		} {
			go acquire(test.waits)
			synctest.Wait()
			_, err := l.Acquire(ctx, test.refused, 1)
			requireRefused(t, err, test.limit, "m")
		}
		require.Equal(t, 3, l.Waiting())
	})
}

// Without other limits, the requests that wait are limited as well.
func TestWaitingByDefault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Name: "x", Total: limit(1, "m")})
		_, err := l.Try(Owner{}, 1)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wait := func(team byte, key string, requests int, limit string) {
			t.Helper()
			o := Owner{uuid.UUID{team}, strconv.Itoa(int(team)) + key}
			for range requests {
				go func() { _, _ = l.Acquire(ctx, o, 1) }()
			}
			synctest.Wait()
			_, err := l.Acquire(ctx, o, 1)
			requireRefused(t, err, limit, "m")
		}
		for team := range byte(8) {
			wait(team+1, "a", 64, "x.key_waiting")
			wait(team+1, "b", 64, "x.key_waiting")
			wait(team+1, "c", 0, "x.team_waiting")
		}
		wait(9, "d", 0, "x.total_waiting")
		require.Equal(t, 1024, l.Waiting())
	})
}
