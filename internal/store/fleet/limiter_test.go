package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// heldLimiter is a limiter whose statements wait until the test releases them. It works within a synctest bubble.
type heldLimiter struct {
	limiter
	release chan struct{}

	mu   sync.Mutex
	sent []db.RateWindowHitParams
}

func newHeldLimiter() *heldLimiter {
	h := &heldLimiter{release: make(chan struct{})}
	h.count = func(_ context.Context, p db.RateWindowHitParams) ([]db.RateWindowHitRow, error) {
		h.mu.Lock()
		h.sent = append(h.sent, p)
		h.mu.Unlock()
		<-h.release
		return make([]db.RateWindowHitRow, len(p.KeyIds)), nil
	}
	return h
}

// start begins to count n requests of a key and waits until they wait.
func (h *heldLimiter) start(ctx context.Context, keyID string, n int) {
	for range n {
		go func() { _, _ = h.hit(ctx, keyID) }()
	}
	synctest.Wait()
}

// TestLimiterStatements checks what one statement counts, and how many run at once.
func TestLimiterStatements(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHeldLimiter()
		h.start(t.Context(), "a", 1)
		h.start(t.Context(), "a", 5)
		require.Len(t, h.sent, 1, "a second statement would wait for the lock of a")
		h.start(t.Context(), "b", 1)
		require.Len(t, h.sent, 2, "b does not wait for the statement of a")
		h.start(t.Context(), "a", 20_000)
		keys := []string{"a"}
		for i := range 100 {
			keys = append(keys, fmt.Sprintf("c %02d", i))
			h.start(t.Context(), keys[i+1], 1)
		}
		require.Len(t, h.sent, limiterStatements)

		h.release <- struct{}{}
		synctest.Wait()
		h.release <- struct{}{}
		synctest.Wait()
		close(h.release)
		synctest.Wait()
		counted := map[string]int32{}
		for _, p := range h.sent[2:] {
			require.LessOrEqual(t, len(p.KeyIds), limiterKeys)
			require.True(t, slices.IsSorted(p.KeyIds))
			for i, keyID := range p.KeyIds {
				require.NotContains(t, counted, keyID, "all waiting requests of a key are counted together")
				counted[keyID] = p.Hits[i]
			}
		}
		require.Len(t, counted, len(keys))
		require.EqualValues(t, 20_005, counted["a"])
		require.Empty(t, h.waiting)
		require.Empty(t, h.counting)
		require.Zero(t, h.statements)
	})
}

// TestLimiterGone checks that a request returns at its deadline although its statement runs, and that it is not counted
// if its statement has not begun.
func TestLimiterGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHeldLimiter()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		h.start(ctx, "key", 20)
		_, err := h.hit(ctx, "key")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		h.start(ctx, "only requests that are gone", 3)
		h.start(t.Context(), "key", 2)
		close(h.release)
		synctest.Wait()
		last := h.sent[len(h.sent)-1]
		require.Equal(t, db.RateWindowHitParams{KeyIds: []string{"key"}, Hits: []int32{2}}, last)
	})
}

// TestLimiterFailure checks that each request of a statement gets its error, also after a panic, and that the limiter
// goes on.
func TestLimiterFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		var l limiter
		for _, count := range []func() ([]db.RateWindowHitRow, error){
			func() ([]db.RateWindowHitRow, error) { return nil, failed },
			func() ([]db.RateWindowHitRow, error) { return nil, nil },
			func() ([]db.RateWindowHitRow, error) { panic("in count") },
		} {
			l.count = func(context.Context, db.RateWindowHitParams) ([]db.RateWindowHitRow, error) { return count() }
			_, err := l.hit(t.Context(), "key")
			require.Error(t, err)
		}
		l.count = func(context.Context, db.RateWindowHitParams) ([]db.RateWindowHitRow, error) {
			return []db.RateWindowHitRow{{Allowed: 1, Remaining: 7, ResetSeconds: 1.5}}, nil
		}
		v, err := l.hit(t.Context(), "key")
		require.NoError(t, err)
		require.Equal(t, roomsensor.RateVerdict{Allowed: true, Remaining: 7, Reset: 1500 * time.Millisecond}, v)
	})
}

// TestVerdict checks that of requests that were counted together, the first ones are allowed.
func TestVerdict(t *testing.T) {
	t.Parallel()
	row := &db.RateWindowHitRow{Allowed: 2, Remaining: 5}
	require.Equal(t, 6, verdict(row, 0).Remaining)
	require.Equal(t, 5, verdict(row, 1).Remaining)
	row.Remaining = 0
	require.True(t, verdict(row, 1).Allowed)
	require.Equal(t, roomsensor.RateVerdict{}, verdict(row, 2))
}

// Changes of a device wait for those of its team, but not for those of another team that names the device.
func TestWaitForDevice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, teams := &Store{changes: deviceChanges()}, [2]uuid.UUID{{1}, {2}}
		for i, team := range teams {
			_, err := s.waitForDevice(t.Context(), team, "device", time.Now().Add(changeWait))
			require.NoError(t, err, i)
		}
		_, err := s.waitForDevice(t.Context(), teams[0], "device", time.Now().Add(changeWait))
		var refusal *roomsensor.Error
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, "device_changes.key", refusal.Limit)
	})
}
