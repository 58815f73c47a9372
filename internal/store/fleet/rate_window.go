package fleet

// The file is named in the singular because Go would build rate_windows.go on Windows only.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"roomsensor/db"
	"roomsensor/internal/panics"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// CountRequest counts a request of an API key, or denies it (decision 25). It returns when ctx ends at the latest. A
// request whose ctx ends before it is sent to the database is not counted.
func (s *Store) CountRequest(ctx context.Context, keyID string) (roomsensor.RateVerdict, error) {
	verdict, err := s.limiter.hit(ctx, keyID)
	if err != nil {
		return roomsensor.RateVerdict{}, fmt.Errorf("counting a request: %w", pg.Translate(err))
	}
	return verdict, nil
}

const (
	// limiterTimeout bounds a statement that counts requests. A request may have less time; it leaves and the others
	// wait.
	limiterTimeout = 5 * time.Second
	// limiterStatements is how many statements count requests at the same time. A second one keeps keys apart from one
	// that waits for a lock. More would count fewer requests each, and cost the database more.
	limiterStatements = 2
	// limiterKeys is the number of keys of a statement, which takes some 10 ms. It bounds how long the keys that come
	// next wait, and how many requests fail with the statement.
	limiterKeys = 64
)

// limiter counts requests against the limits of their keys. Requests that arrive while statements run are counted
// together by the next one. A single request is counted at once, and under load each request costs less. All waiting
// requests of a key are counted as one, so that they delay no other key.
type limiter struct {
	count func(context.Context, db.RateWindowHitParams) ([]db.RateWindowHitRow, error)

	mu         sync.Mutex
	statements int
	waiting    map[string][]*hit // by key
	queue      []string          // keys with waiting requests, of which no statement counts others
	counting   map[string]bool   // keys in a statement; a second one would wait for the lock of the first
}

// hit is a request to be counted.
type hit struct {
	gone    <-chan struct{} // closed when the request has ended
	verdict roomsensor.RateVerdict
	err     error
	counted chan struct{} // closed when verdict and err are set
}

// hit counts or denies one request, or returns the error of ctx if that ends first.
func (l *limiter) hit(ctx context.Context, keyID string) (roomsensor.RateVerdict, error) {
	h := &hit{gone: ctx.Done(), counted: make(chan struct{})}
	if l.add(keyID, h) {
		go l.countWaiting(context.WithoutCancel(ctx))
	}
	select {
	case <-h.counted:
		return h.verdict, h.err
	case <-ctx.Done():
		return roomsensor.RateVerdict{}, ctx.Err()
	}
}

// add adds a request to those that wait, and reports whether the caller must call countWaiting.
func (l *limiter) add(keyID string, h *hit) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting, l.counting = map[string][]*hit{}, map[string]bool{}
	}
	if len(l.waiting[keyID]) == 0 && !l.counting[keyID] {
		l.queue = append(l.queue, keyID)
	}
	l.waiting[keyID] = append(l.waiting[keyID], h)
	if len(l.queue) == 0 || l.statements == limiterStatements {
		return false
	}
	l.statements++
	return true
}

// countWaiting counts requests until none is waiting.
func (l *limiter) countWaiting(ctx context.Context) {
	for batch := l.next(nil); len(batch) > 0; batch = l.next(batch) {
		l.countBatch(ctx, batch)
	}
}

// next releases the keys of a batch that was counted, and returns the next batch: the requests of the keys that waited
// longest. After an empty batch, countWaiting ends.
func (l *limiter) next(done map[string][]*hit) map[string][]*hit {
	l.mu.Lock()
	defer l.mu.Unlock()
	for keyID := range done {
		delete(l.counting, keyID)
		if len(l.waiting[keyID]) > 0 {
			l.queue = append(l.queue, keyID)
		}
	}
	batch := make(map[string][]*hit)
	for len(l.queue) > 0 && len(batch) < limiterKeys {
		keyID := l.queue[0]
		l.queue = l.queue[1:]
		hits := slices.DeleteFunc(l.waiting[keyID], (*hit).isGone)
		delete(l.waiting, keyID)
		if len(hits) > 0 {
			batch[keyID] = hits
			l.counting[keyID] = true
		}
	}
	if len(batch) == 0 {
		l.statements--
	}
	return batch
}

func (h *hit) isGone() bool {
	select {
	case <-h.gone:
		return true
	default:
		return false
	}
}

// countBatch counts requests in one statement and wakes those who wait for them. A panic becomes their error.
func (l *limiter) countBatch(ctx context.Context, batch map[string][]*hit) {
	ctx, cancel := context.WithTimeout(ctx, limiterTimeout)
	defer cancel()
	keys := slices.Sorted(maps.Keys(batch)) // All replicas must lock keys in one order.
	rows, err := l.countKeys(ctx, keys, batch)
	for i, keyID := range keys {
		for j, h := range batch[keyID] {
			if h.err = err; err == nil {
				h.verdict = verdict(&rows[i], j)
			}
			close(h.counted)
		}
	}
}

func (l *limiter) countKeys(
	ctx context.Context, keys []string, batch map[string][]*hit,
) (rows []db.RateWindowHitRow, err error) {
	params := db.RateWindowHitParams{KeyIds: keys}
	for _, keyID := range keys {
		params.Hits = append(params.Hits, int32(len(batch[keyID]))) //nolint:gosec // Each one is a goroutine.
	}
	err = panics.Recover(func() (err error) {
		rows, err = l.count(ctx, params)
		return err
	})
	if err == nil && len(rows) != len(keys) {
		err = fmt.Errorf("counting %d keys returned %d rows", len(keys), len(rows))
	}
	return rows, err
}

// countHits counts the requests of some keys. If reads may run on standbys, the statement also returns the position of
// the primary, see pg.DB.ReadAnywhere: a statement of its own would cost each request a round trip.
func (s *Store) countHits(ctx context.Context, p db.RateWindowHitParams) ([]db.RateWindowHitRow, error) {
	p.WithPosition = s.HasStandbys()
	return s.Queries.RateWindowHit(ctx, s.Admission, p)
}

// verdict returns the verdict on the n-th of the requests that were counted together. The first ones are allowed.
func verdict(row *db.RateWindowHitRow, n int) roomsensor.RateVerdict {
	allowed := int(row.Allowed)
	return roomsensor.RateVerdict{
		Allowed:   n < allowed,
		Remaining: int(row.Remaining) + max(0, allowed-1-n),
		Reset:     time.Duration(row.ResetSeconds * float64(time.Second)),
		Position:  roomsensor.Position{System: row.SystemID, Timeline: row.Timeline, Log: row.Flushed},
	}
}

// purgeKeys is the number of keys whose requests are deleted by one statement. They have at most 600 rows each.
const purgeKeys = 20

// PurgeRateWindows deletes the requests of keys that had none in the last 10 minutes, those of revoked and expired keys
// included, and returns the number of these keys. If another process does so at the same time, it leaves the rest to
// that process.
func (s *Store) PurgeRateWindows(ctx context.Context) (keys int64, err error) {
	p := db.RateWindowPurgeParams{MostKeys: purgeKeys}
	for {
		deleted, err := s.Queries.RateWindowPurge(ctx, s.Pool, p)
		if err != nil {
			return keys, fmt.Errorf("deleting the requests of idle keys: %w", pg.Translate(err))
		}
		keys += deleted.Keys
		if deleted.Keys == 0 {
			return keys, nil
		}
		p.After = deleted.LastKeyID
	}
}
