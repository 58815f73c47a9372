package httpedge

import (
	"context"
	"sync"
	"time"

	"roomsensor/internal/panics"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

const (
	// keyLookupTimeout bounds one query for keys, which many requests may wait for.
	keyLookupTimeout = 3 * time.Second
	// keyLookupInterval is the least time between two queries: requests with made-up keys cost at most 200 a second.
	keyLookupInterval = 5 * time.Millisecond
	// keyLookupIDs is the number of ids of a query. It bounds how long the ids that come next wait.
	keyLookupIDs = 500
	// maxKeyLookups bounds the memory of the ids that wait, a second's worth or more.
	maxKeyLookups = 50_000
)

// KeyQuery returns those keys that exist of the keys with some ids.
type KeyQuery func(ctx context.Context, ids []string) ([]roomsensor.Key, error)

// keyLookups looks up keys in the database, with one query at a time. Requests for the same id share a lookup. The ids
// that are asked for during a query are looked up together by the next one, so that a flood of made-up ids delays the
// lookup of another id by two queries and not by a query for each of them.
type keyLookups struct {
	query KeyQuery
	began time.Time // when the last query began; only run uses it

	mu      sync.Mutex
	byID    map[string]*keyLookup // waiting, or in the query that runs
	waiting []*keyLookup          // the oldest first
	running bool
}

type keyLookup struct {
	id   string
	key  roomsensor.Key
	err  error
	done chan struct{} // closed when key and err are set
}

func newKeyLookups(query KeyQuery) *keyLookups {
	return &keyLookups{query: query, byID: map[string]*keyLookup{}}
}

// find returns a key, or roomsensor.ErrNotFound. The lookup does not end with the request that started it, because
// others wait for it, too.
func (l *keyLookups) find(ctx context.Context, id string) (roomsensor.Key, error) {
	lookup, start := l.join(id)
	if lookup == nil {
		return roomsensor.Key{}, roomsensor.CodeOverloaded.New()
	}
	if start {
		go l.run(context.WithoutCancel(ctx))
	}
	select {
	case <-lookup.done:
		return lookup.key, lookup.err
	case <-ctx.Done():
		return roomsensor.Key{}, ctx.Err()
	}
}

// join returns the lookup of an id, and whether the caller must start run. It returns nil if too many ids are waiting.
func (l *keyLookups) join(id string) (lookup *keyLookup, start bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lookup, ok := l.byID[id]; ok {
		return lookup, false
	}
	if len(l.waiting) == maxKeyLookups {
		return nil, false
	}
	lookup = &keyLookup{id: id, err: roomsensor.ErrNotFound, done: make(chan struct{})}
	l.byID[id] = lookup
	l.waiting = append(l.waiting, lookup)
	start, l.running = !l.running, true
	return lookup, start
}

// run looks up ids until none is waiting. Only one run is in progress at a time.
func (l *keyLookups) run(ctx context.Context) {
	for l.hasWaiting() {
		_ = retry.Sleep(ctx, time.Until(l.began.Add(keyLookupInterval))) // ctx does not end.
		l.began = time.Now()
		l.lookUp(ctx, l.next())
	}
}

// hasWaiting returns false if run ends.
func (l *keyLookups) hasWaiting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = len(l.waiting) > 0
	return l.running
}

// next returns the lookups that waited longest.
func (l *keyLookups) next() []*keyLookup {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.waiting), keyLookupIDs)
	batch := l.waiting[:n:n]
	if l.waiting = l.waiting[n:]; len(l.waiting) == 0 {
		l.waiting = nil
	}
	return batch
}

// lookUp runs one query and wakes those who wait for it.
func (l *keyLookups) lookUp(ctx context.Context, batch []*keyLookup) {
	ctx, cancel := context.WithTimeout(ctx, keyLookupTimeout)
	defer cancel()
	ids := make([]string, len(batch))
	for i, lookup := range batch {
		ids[i] = lookup.id
	}
	var keys []roomsensor.Key
	err := panics.Recover(func() (err error) { // A panic would end the process.
		keys, err = l.query(ctx, ids)
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range keys {
		if lookup, ok := l.byID[keys[i].ID]; ok {
			lookup.key, lookup.err = keys[i], nil
		}
	}
	for _, lookup := range batch {
		if err != nil {
			lookup.err = err
		}
		delete(l.byID, lookup.id)
		close(lookup.done)
	}
}
