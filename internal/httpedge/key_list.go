package httpedge

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"roomsensor/internal/panics"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

const (
	// keyListTimeout bounds each query of a KeyList. A revoke takes effect within 5 seconds (decision 24): keyAge, and
	// this time for the queries.
	keyListTimeout = 2 * time.Second
	// keyListAge is the interval at which all keys are read, which finds those that were deleted with SQL.
	keyListAge = 5 * time.Minute
	// keyPage is the number of keys of a query, which takes some 100 ms. A list of any length is read in time, because
	// each page has a timeout of its own. If more keys than this changed at once, all are read.
	keyPage = 10_000
)

// KeyTable reads stored keys.
type KeyTable interface {
	// IngestKeysByID returns those keys that exist of the keys with some ids.
	IngestKeysByID(ctx context.Context, ids []string) ([]roomsensor.Key, error)
	// IngestKeysAfter lists up to most keys, in the order of their ids, that come after an id.
	IngestKeysAfter(ctx context.Context, id string, most int32) ([]roomsensor.Key, error)
	// IngestKeyPosition returns the position from which IngestKeysChanged lists what a query before did not see.
	IngestKeyPosition(ctx context.Context) (roomsensor.KeyPosition, error)
	// IngestKeysChanged lists up to most keys that were created or revoked since a position, and possibly others.
	IngestKeysChanged(ctx context.Context, since roomsensor.KeyPosition, most int32) ([]roomsensor.Key, error)
}

// KeyList keeps all keys in memory. It reads them once, and then every keyAge those that changed. While the database is
// unavailable it goes on with the keys that it knows. The receiver uses it: uploads must go on without the database.
type KeyList struct {
	table   KeyTable
	log     zerolog.Logger
	lookups *keyLookups

	mu       sync.Mutex
	byID     map[string]roomsensor.Key
	failedAt time.Time // when the last query failed; zero after a successful one

	loaded chan struct{} // closed once all keys were read

	// Only Run uses these.
	position roomsensor.KeyPosition // up to which byID has all changes
	readAt   time.Time              // when all keys were read; zero before
}

// NewKeyList makes an empty list.
func NewKeyList(table KeyTable, log zerolog.Logger) *KeyList {
	l := &KeyList{table: table, log: log, byID: map[string]roomsensor.Key{}, loaded: make(chan struct{})}
	l.lookups = newKeyLookups(l.query)
	return l
}

// Run loads the keys at once and their changes every keyAge, until ctx ends.
func (l *KeyList) Run(ctx context.Context) {
	retry.Every(ctx, keyAge, func(ctx context.Context) {
		err := panics.Recover(func() error { return l.load(ctx) })
		l.setFailed(err)
		if err != nil && ctx.Err() == nil {
			l.log.Debug().Err(err).Msg("could not load the ingest keys; using those in memory")
		}
	})
}

// Loaded is closed once all keys were read.
func (l *KeyList) Loaded() <-chan struct{} { return l.loaded }

// Cached implements KeySource.
func (l *KeyList) Cached(id string) (roomsensor.Key, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key, ok := l.byID[id]
	return key, ok
}

// Find implements KeySource. It looks up a key that is not in memory, so that a new key works at once. Its error is
// overloaded if the database is unavailable.
func (l *KeyList) Find(ctx context.Context, id string) (roomsensor.Key, error) {
	if key, ok := l.Cached(id); ok {
		return key, nil
	}
	if l.failing() {
		return roomsensor.Key{}, errKeyUnchecked()
	}
	key, err := l.lookups.find(ctx, id)
	if _, panicked := errors.AsType[*panics.Error](err); err == nil || panicked || errors.Is(err, roomsensor.ErrNotFound) {
		return key, err
	}
	return roomsensor.Key{}, errKeyUnchecked()
}

func errKeyUnchecked() *roomsensor.Error {
	return Overloaded(keyAge,
		"The credential cannot be checked right now. Send the request again after the seconds in Retry-After.")
}

// query looks up keys and adds them to the list. It replaces none, because Run may have read a later state of it.
func (l *KeyList) query(ctx context.Context, ids []string) ([]roomsensor.Key, error) {
	keys, err := l.table.IngestKeysByID(ctx, ids)
	l.setFailed(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range keys {
		if _, ok := l.byID[keys[i].ID]; !ok {
			l.byID[keys[i].ID] = keys[i]
		}
	}
	return keys, err
}

// failing reports whether a query failed so recently that another one is not worth the wait.
func (l *KeyList) failing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.failedAt.IsZero() && time.Since(l.failedAt) < keyAge
}

func (l *KeyList) setFailed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failedAt = (time.Time{}); err != nil {
		l.failedAt = time.Now()
	}
}

// load reads what changed, or all keys if their changes are not enough.
func (l *KeyList) load(ctx context.Context) error {
	if !l.readAt.IsZero() && time.Since(l.readAt) < keyListAge {
		if complete, err := l.loadChanges(ctx); complete || err != nil {
			return err
		}
	}
	return l.loadAll(ctx)
}

// loadChanges reads the keys that changed since position. It is not complete after a change of the server, and if too
// many keys changed. The new position is read first, so that no change falls between the two queries.
func (l *KeyList) loadChanges(ctx context.Context) (complete bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, keyListTimeout)
	defer cancel()
	position, err := l.readPosition(ctx)
	if err != nil || !position.ServerStarted.Equal(l.position.ServerStarted) {
		return false, err
	}
	changed, err := l.table.IngestKeysChanged(ctx, l.position, keyPage)
	if err != nil || len(changed) == keyPage {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range changed {
		l.byID[changed[i].ID] = changed[i]
	}
	l.position = position
	return true, nil
}

// loadAll reads all keys, and then those that changed since it began.
func (l *KeyList) loadAll(ctx context.Context) error {
	began := time.Now()
	position, err := l.readPosition(ctx)
	if err != nil {
		return err
	}
	all := map[string]roomsensor.Key{}
	for after, more := "", true; more; {
		page, err := l.loadPage(ctx, after)
		if err != nil {
			return err
		}
		for i := range page {
			all[page[i].ID] = page[i]
		}
		if more = len(page) == keyPage; more {
			after = page[len(page)-1].ID
			if !l.readAt.IsZero() { // A revoke takes effect in time, however long the list is.
				if _, err := l.loadChanges(ctx); err != nil {
					return err
				}
			}
		}
	}
	if err := l.replace(ctx, all, position); err != nil {
		return err
	}
	if l.readAt.IsZero() {
		close(l.loaded)
	}
	l.position, l.readAt = position, began
	return nil
}

func (l *KeyList) readPosition(ctx context.Context) (roomsensor.KeyPosition, error) {
	ctx, cancel := context.WithTimeout(ctx, keyListTimeout)
	defer cancel()
	return l.table.IngestKeyPosition(ctx)
}

func (l *KeyList) loadPage(ctx context.Context, after string) ([]roomsensor.Key, error) {
	ctx, cancel := context.WithTimeout(ctx, keyListTimeout)
	defer cancel()
	return l.table.IngestKeysAfter(ctx, after, keyPage)
}

// replace replaces the list by the keys that were read since a position, and by what changed since: loadChanges may
// have read a later state of a key than its page has.
func (l *KeyList) replace(ctx context.Context, all map[string]roomsensor.Key, since roomsensor.KeyPosition) error {
	ctx, cancel := context.WithTimeout(ctx, keyListTimeout)
	defer cancel()
	changed, err := l.table.IngestKeysChanged(ctx, since, keyPage)
	if err != nil {
		return err
	}
	for i := range changed {
		all[changed[i].ID] = changed[i]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byID = all
	return nil
}
