// Package password hashes the passwords of people, checks them, and lists those that nobody may choose.
package password

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

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

// maxListed limits the memory of a List.
const maxListed = 1_000_000

// List has passwords that nobody may choose, such as those of a breach. The zero value has none.
type List struct {
	seed   maphash.Seed
	hashes []uint64 // sorted
}

// ReadList reads passwords, one per line. Those with fewer than least characters are left out.
func ReadList(from io.Reader, least int) (List, error) {
	l := List{seed: maphash.MakeSeed()}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		if utf8.RuneCountInString(lines.Text()) < least {
			continue
		}
		if l.hashes = append(l.hashes, l.hash(lines.Text())); len(l.hashes) > maxListed {
			return List{}, fmt.Errorf("it has more than %d passwords", maxListed)
		}
	}
	if err := lines.Err(); err != nil {
		return List{}, fmt.Errorf("reading the list of passwords: %w", err)
	}
	slices.Sort(l.hashes)
	return l, nil
}

// hash ignores the letter case. Of a million passwords, one in 10^13 others has the hash of one of them.
func (l List) hash(text string) uint64 { return maphash.String(l.seed, strings.ToLower(text)) }

// Has reports whether a password is in the list, in any letter case.
func (l List) Has(text string) bool {
	if len(l.hashes) == 0 {
		return false
	}
	_, found := slices.BinarySearch(l.hashes, l.hash(text))
	return found
}

// inTurn computes a hash when fewer than the permitted number are computed.
func inTurn(ctx context.Context, compute func() error) error {
	if err := running.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("waiting to hash a password: %w", err)
	}
	defer running.Release(1)
	return compute()
}
