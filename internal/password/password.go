// Package password hashes the passwords of people and checks them.
package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/sync/semaphore"
)

const (
	saltBytes = 16
	hashBytes = 32
)

// running limits how many hashes are computed at the same time. Each takes 19 MiB and one core: half of the cores
// remain for pages while somebody guesses passwords. The other hashes wait until their context ends.
var running = semaphore.NewWeighted(int64(max(1, min(4, runtime.GOMAXPROCS(0)/2))))

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
var Unknown = Default.encode(make([]byte, saltBytes), make([]byte, hashBytes))

// Hash returns the hash of a password, with its cost and a random salt, in the format of the reference implementation
// of argon2. Its error is that of ctx.
func (c Cost) Hash(ctx context.Context, text string) (string, error) {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // It never returns an error.
	hash, err := c.compute(ctx, text, salt)
	if err != nil {
		return "", err
	}
	return c.encode(salt, hash), nil
}

func (c Cost) encode(salt, hash []byte) string {
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf(format, argon2.Version, c.MemoryKiB, c.Passes, c.Threads, encode(salt)+"$"+encode(hash))
}

const format = "$argon2id$v=%d$m=%d,t=%d,p=%d$%s"

// Matches reports whether a password belongs to a hash. Its error is that of ctx, or means that the hash is malformed.
func Matches(ctx context.Context, hash, text string) (bool, error) {
	c, salt, want, err := parse(hash)
	if err != nil {
		return false, err
	}
	got, err := c.compute(ctx, text, salt)
	return err == nil && subtle.ConstantTimeCompare(got, want) == 1, err
}

func (c Cost) compute(ctx context.Context, text string, salt []byte) ([]byte, error) {
	if err := running.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("waiting to hash a password: %w", err)
	}
	defer running.Release(1)
	return argon2.IDKey([]byte(text), salt, c.Passes, c.MemoryKiB, c.Threads, hashBytes), nil
}

// parse reads what Hash returned.
func parse(hash string) (c Cost, salt, sum []byte, err error) {
	var version int
	var encoded string
	if _, err := fmt.Sscanf(hash, format, &version, &c.MemoryKiB, &c.Passes, &c.Threads, &encoded); err != nil {
		return c, nil, nil, fmt.Errorf("reading a password hash: %w", err)
	}
	saltText, sumText, _ := strings.Cut(encoded, "$")
	salt, err = base64.RawStdEncoding.DecodeString(saltText)
	if err == nil {
		sum, err = base64.RawStdEncoding.DecodeString(sumText)
	}
	if err != nil {
		return c, nil, nil, fmt.Errorf("reading a password hash: %w", err)
	}
	if version != argon2.Version || c.Passes == 0 || c.Threads == 0 || len(sum) != hashBytes {
		return c, nil, nil, errors.New("reading a password hash: unknown version or cost")
	}
	return c, salt, sum, nil
}
