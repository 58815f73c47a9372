// Package password hashes the passwords of people and checks them.
package password

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/alexedwards/argon2id"
	"golang.org/x/sync/semaphore"
)

// running limits how many hashes are computed at the same time. Each takes 19 MiB and one core: half of the cores
// remain for pages while somebody guesses passwords. The other hashes wait until their context ends.
var running = semaphore.NewWeighted(int64(max(1, min(4, runtime.GOMAXPROCS(0)/2))))

// hashBytes is the length of a hash without its salt.
const hashBytes = 32

// Cost is how expensive a hash is. A stored hash names its own.
type Cost struct {
	MemoryKiB uint32
	Passes    uint32
	Threads   uint8
}

// Default is the cost of the hashes that the service stores. OWASP recommends it for argon2id.
var Default = Cost{MemoryKiB: 19 << 10, Passes: 2, Threads: 1}

// Unknown is a hash of the default cost that belongs to no password. A check against it takes as long as one for an
// account that exists.
const Unknown = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// Hash returns the hash of a password, with its cost and a random salt, in the format of the reference implementation
// of argon2. Its error is that of ctx.
func (c Cost) Hash(ctx context.Context, text string) (hash string, err error) {
	err = inTurn(ctx, func() (err error) {
		hash, err = argon2id.CreateHash(text, &argon2id.Params{
			Memory: c.MemoryKiB, Iterations: c.Passes, Parallelism: c.Threads, SaltLength: 16, KeyLength: hashBytes,
		})
		return err //nolint:wrapcheck // It is always nil: crypto/rand never returns an error.
	})
	return hash, err
}

// Matches reports whether a password belongs to a hash. Its error is that of ctx, or means that the hash is malformed.
func Matches(ctx context.Context, hash, text string) (matches bool, err error) {
	cost, _, _, err := argon2id.DecodeHash(hash)
	if err == nil && (cost.Iterations == 0 || cost.Parallelism == 0 || cost.KeyLength != hashBytes) {
		err = errors.New("unknown cost or length")
	}
	if err != nil {
		return false, fmt.Errorf("reading a password hash: %w", err)
	}
	err = inTurn(ctx, func() (err error) {
		matches, err = argon2id.ComparePasswordAndHash(text, hash)
		return err //nolint:wrapcheck // It is always nil, because the hash was read above.
	})
	return matches, err
}

// inTurn computes a hash when fewer than the permitted number are computed.
func inTurn(ctx context.Context, compute func() error) error {
	if err := running.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("waiting to hash a password: %w", err)
	}
	defer running.Release(1)
	return compute()
}
