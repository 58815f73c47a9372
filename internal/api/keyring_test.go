package api

import (
	"context"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// drawer holds keys by their ids.
type drawer map[string]roomsensor.Key

func (d drawer) APIKey(_ context.Context, id string) (roomsensor.Key, error) {
	key, ok := d[id]
	if !ok {
		return roomsensor.Key{}, roomsensor.ErrNotFound
	}
	return key, nil
}

// Decision 24: however a key is refused, its secret is hashed and compared as
// often.
func TestRefusedKeysAreComparedAsOften(t *testing.T) {
	t.Parallel()
	past := time.Unix(0, 0)
	sum := sha256.Sum256([]byte("secret"))
	k := newKeyring(drawer{
		"good":    {ID: "good", SecretSHA256: sum},
		"revoked": {ID: "revoked", SecretSHA256: sum, RevokedAt: &past},
		"expired": {ID: "expired", SecretSHA256: sum, ExpiresAt: &past},
	}, func() time.Time { return past })
	comparisons := 0
	k.matches = func(key *roomsensor.Key, secret string) bool {
		comparisons++
		return key.Matches(secret)
	}
	for range 3 {
		_, err := k.authenticate(t.Context(), "rsk_good_secret") // In memory from here on.
		require.NoError(t, err)
		for _, text := range []string{
			"rsk_nobody_secret", "rsk_good_wrong", "rsk_revoked_secret", "rsk_revoked_wrong", "rsk_expired_secret", "none",
		} {
			comparisons = 0
			_, err := k.authenticate(t.Context(), text)
			require.Error(t, err, text)
			require.Equal(t, 2, comparisons, text)
		}
	}
}
