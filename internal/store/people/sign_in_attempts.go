package people

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/db"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/store/pg"
)

// attemptKeys are the hashes under which an attempt is counted.
type attemptKeys struct{ network, pair, source, account []byte }

func keysOf(a accounts.SignInAttempt) attemptKeys {
	hash := func(parts ...string) []byte {
		sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
		return sum[:]
	}
	email := strings.ToLower(a.Email)
	network := hash("network", accounts.Network(a.Address))
	return attemptKeys{network, hash("pair", email, a.Source()), hash("source", a.Source()), hash("account", email)}
}

// CountSignIn counts an attempt to sign in before its password is checked. It returns how long the person has to wait,
// or 0 if the attempt is allowed. The table has three rows per attempt of the last 15 minutes at most, and of a network
// that is refused only one.
func (s *Store) CountSignIn(ctx context.Context, a accounts.SignInAttempt) (wait time.Duration, err error) {
	keys := keysOf(a)
	wait, err = s.countAttempt(ctx, map[string]int32{string(keys.network): accounts.MaxNetworkAttempts})
	if err != nil || wait > 0 {
		return wait, err
	}
	known, err := s.Queries.SignInAddressExists(ctx, s.Pool, db.SignInAddressExistsParams{
		Email: a.Email, AddressSha256: keys.source,
	})
	if err != nil {
		return 0, fmt.Errorf("reading the addresses of a user: %w", pg.Translate(err))
	}
	ofAccount := int32(accounts.MaxUserAttempts)
	if known {
		ofAccount = math.MaxInt32
	}
	return s.countAttempt(ctx, map[string]int32{
		string(keys.pair): accounts.MaxPairAttempts, string(keys.source): accounts.MaxSourceAttempts,
		string(keys.account): ofAccount,
	})
}

// countAttempt counts an attempt under keys with their limits, and returns how long the person has to wait, or 0.
func (s *Store) countAttempt(ctx context.Context, limits map[string]int32) (wait time.Duration, err error) {
	var keys [][]byte
	for key := range limits {
		keys = append(keys, []byte(key))
	}
	rows, err := s.Queries.SignInAttemptCount(ctx, s.Pool, keys)
	if err != nil {
		return 0, fmt.Errorf("counting an attempt to sign in: %w", pg.Translate(err))
	}
	for _, row := range rows {
		if row.Attempts > limits[string(row.KeySha256)] {
			wait = max(wait, time.Duration(row.ResetSeconds*float64(time.Second)))
		}
	}
	return wait, nil
}

// SignedIn forgets the failed attempts for an account, and remembers the address.
func (s *Store) SignedIn(ctx context.Context, userID uuid.UUID, a accounts.SignInAttempt) error {
	keys := keysOf(a)
	err := s.Queries.SignInAttemptDelete(ctx, s.Pool, [][]byte{keys.pair, keys.account})
	if err == nil {
		err = s.Queries.SignInAddressPut(ctx, s.Pool, db.SignInAddressPutParams{UserID: userID, AddressSha256: keys.source})
	}
	if err == nil {
		err = s.Queries.SignInAddressTrim(ctx, s.Pool, userID)
	}
	if err != nil {
		return fmt.Errorf("storing a sign-in: %w", pg.Translate(err))
	}
	return nil
}

// PurgeSignIns deletes sessions, attempts, addresses and links that have no effect any more, and returns their number.
func (s *Store) PurgeSignIns(ctx context.Context) (deleted int64, err error) {
	for _, purge := range []func(context.Context, db.DBTX) (int64, error){
		s.Queries.SessionPurge, s.Queries.SignInAttemptPurge, s.Queries.SignInAddressPurge, s.Queries.SignInLinkPurge,
		s.Queries.SharedLinkPurge,
	} {
		n, failed := purge(ctx, s.Pool)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("deleting old sessions and sign-ins: %w", pg.Translate(failed)))
		}
		deleted += n
	}
	return deleted, err
}
