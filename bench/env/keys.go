package env

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"roomsensor/test/harness"
)

const (
	// keyRequests is the number of requests that the limiter allows per key in 10 minutes (decision 25).
	keyRequests = 600
	// insertKeys is the number of keys that are inserted at a time.
	insertKeys = 500
)

// Keys provides API keys of a team.
type Keys struct {
	env  *Env
	team uuid.UUID

	mu     sync.Mutex
	unused []string
}

// NewKeys returns a source of API keys.
func (e *Env) NewKeys(team uuid.UUID) *Keys { return &Keys{env: e, team: team} }

// Lease is a key in use. It is not safe for concurrent use.
type Lease struct {
	keys   *Keys
	bearer string
	left   int // requests
}

// NewLease returns a lease without a key.
func (k *Keys) NewLease() *Lease { return &Lease{keys: k} }

// Bearer returns the value of the Authorization header for the next request. It uses a key until its requests are
// spent, as a client does, so that the limiter works on windows of all sizes.
func (l *Lease) Bearer(ctx context.Context) (string, error) {
	if l.left == 0 {
		key, err := l.keys.take(ctx)
		if err != nil {
			return "", err
		}
		l.bearer, l.left = "Bearer "+key, keyRequests
	}
	l.left--
	return l.bearer, nil
}

func (k *Keys) take(ctx context.Context) (key string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.unused) == 0 {
		if k.unused, err = harness.InsertAPIKeys(ctx, k.env.Pool, k.team, insertKeys); err != nil {
			return "", err
		}
	}
	key, k.unused = k.unused[0], k.unused[1:]
	return key, nil
}
