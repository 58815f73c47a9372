package ingest

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"roomsensor/internal/roomsensor"
)

const (
	// reloadEvery is how old the credentials may be, so that a revoke bites
	// within 5 seconds.
	reloadEvery = 2 * time.Second
	// reloadTimeout keeps a request with an unknown credential from waiting
	// for a database that does not answer.
	reloadTimeout = 2 * time.Second
	// maxPerKey is how many requests of one credential run at once. A whole
	// fleet may share one.
	maxPerKey = 128
)

// credentials keeps all upload credentials in memory, and goes on with them
// while the database is away.
type credentials struct {
	keys KeyStore
	log  zerolog.Logger

	loading chan struct{} // full while a load runs

	mu     sync.Mutex
	known  map[string]roomsensor.Key
	asOf   time.Time // when the load that gave them began
	failed time.Time // when the last load failed; zero after one that did not
}

func newCredentials(keys KeyStore, log zerolog.Logger) *credentials {
	return &credentials{keys: keys, log: log, loading: make(chan struct{}, 1)}
}

// run loads the credentials at once and then again and again, until ctx ends.
func (c *credentials) run(ctx context.Context) {
	every(ctx, reloadEvery, func() {
		if !c.load(ctx, time.Now()) && ctx.Err() == nil {
			c.log.Debug().Msg("credentials were not read again; going on with those that are known")
		}
	})
}

// load reads the credentials, unless a load that began no earlier than an
// instant has done so meanwhile, or one has failed since: whoever waited for
// its turn would else wait for a database that is away once more.
func (c *credentials) load(ctx context.Context, after time.Time) bool {
	select {
	case c.loading <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-c.loading }()
	if loaded, failed := c.since(after); loaded || failed {
		return loaded
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	keys, err := c.keys.IngestKeys(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed = time.Now()
		return false
	}
	known := make(map[string]roomsensor.Key, len(keys))
	for i := range keys {
		known[keys[i].ID] = keys[i]
	}
	c.known, c.asOf, c.failed = known, began, time.Time{}
	return true
}

func (c *credentials) since(after time.Time) (loaded, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.asOf.Before(after), c.failed.After(after)
}

func (c *credentials) find(id string) (key roomsensor.Key, known, away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, known = c.known[id]
	return key, known, !c.failed.IsZero() && time.Since(c.failed) < reloadEvery
}

// authenticate finds the credential of a request. One that is not known is
// looked for once more, so that a new one works at once; while the database is
// away nobody can say. An unknown one costs the same comparison as a wrong
// secret, and only who knows the secret hears of a revoke (decision 24).
func (c *credentials) authenticate(ctx context.Context, headers []string) (roomsensor.Key, *roomsensor.Error) {
	if len(headers) == 0 {
		return roomsensor.Key{}, roomsensor.CodeIngestKeyMissing.New()
	}
	id, secret, ok := credentialOf(headers)
	var key roomsensor.Key
	if ok {
		var refusal *roomsensor.Error
		if key, refusal = c.lookup(ctx, id); refusal != nil {
			return roomsensor.Key{}, refusal
		}
	}
	switch {
	case !key.Matches(secret):
		return roomsensor.Key{}, roomsensor.CodeIngestKeyInvalid.New()
	case key.RevokedAt != nil:
		return roomsensor.Key{}, roomsensor.CodeIngestKeyRevoked.New()
	}
	return key, nil
}

func (c *credentials) lookup(ctx context.Context, id string) (roomsensor.Key, *roomsensor.Error) {
	key, known, away := c.find(id)
	if known {
		return key, nil
	}
	if away || !c.load(ctx, time.Now()) {
		return key, overloaded(reloadEvery,
			"The credential cannot be checked right now. Send the request again after the seconds in Retry-After.")
	}
	key, _, _ = c.find(id)
	return key, nil
}

// credentialOf reads the one Authorization header that there must be.
func credentialOf(headers []string) (id, secret string, ok bool) {
	if len(headers) != 1 {
		return "", "", false
	}
	text, ok := roomsensor.BearerToken(headers[0])
	if !ok {
		return "", "", false
	}
	return roomsensor.ParseKey(roomsensor.IngestKey, text)
}

// places bounds how many requests of one credential run at once.
type places struct {
	mu    sync.Mutex
	taken map[string]int
}

func newPlaces() *places { return &places{taken: make(map[string]int)} }

func (p *places) enter(keyID string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[keyID] >= maxPerKey {
		return false
	}
	p.taken[keyID]++
	return true
}

func (p *places) leave(keyID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[keyID]--; p.taken[keyID] == 0 {
		delete(p.taken, keyID)
	}
}
