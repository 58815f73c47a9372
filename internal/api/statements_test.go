package api_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/dbtest"
	"roomsensor/internal/roomsensor"
)

// metered is a fixture with a replica that reaches the database by a way on
// which the statements are counted.
type metered struct {
	*fixture
	executed atomic.Int64
}

func setupMetered(t *testing.T) *metered {
	t.Helper()
	database := dbtest.New(t)
	m := &metered{fixture: setupOn(t, database)}
	url := dbtest.Tap(t, database.URL, func(message dbtest.Message) bool {
		// What the pool asks of a connection that rested goes as a simple query.
		if message.IsStatement() && !strings.HasPrefix(string(message.Body), "-- ping") {
			m.executed.Add(1)
		}
		return true
	})
	m.replica = m.serve(t, backend{openStore(t, url)}, nil)
	return m
}

// costs is how many statements the database executes for a request of a key.
func (m *metered) costs(t *testing.T, key string) (statements int64, got response) {
	t.Helper()
	return m.costsOf(func() response { return m.get(t, "/devices", withKey(key)) })
}

func (m *metered) costsOf(ask func() response) (statements int64, got response) {
	before := m.executed.Load()
	got = ask()
	return m.executed.Load() - before, got
}

// A change by a key that may not, or of what is reserved, is refused before
// anything of the device is read, let alone written.
func TestRefusedChangesReadNothing(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 22.4", "decision 19.8", "decision 19.9", "spec 5, rule 4")
	m := setupMetered(t)
	const admission = 2 // the key is looked up, the request counted
	ask := func(key, body string) (int64, response) {
		return m.costsOf(func() response { return m.patch(t, body, withKey(key), header("Idempotency-Key", "k")) })
	}
	cost, got := ask(m.readKey, `{"metadata":{}}`)
	got.requireError(t, roomsensor.CodeInsufficientScope, "")
	require.EqualValues(t, admission, cost)
	cost, got = ask(m.key, `{"assignment":null}`)
	got.requireError(t, roomsensor.CodeNotImplemented, "assignment")
	require.EqualValues(t, admission, cost)
	cost, got = ask(m.key, `{"metadata":{}}`)
	require.Equal(t, http.StatusOK, got.status)
	require.Greater(t, cost, int64(admission))
}

// Decision 25: once a key is denied, its requests cost the database nothing.
func TestDeniedRequestsCostNoStatement(t *testing.T) {
	t.Parallel()
	m := setupMetered(t)
	m.spend(t, roomsensor.RateLimit, 0)
	cost, got := m.costs(t, m.readKey)
	got.requireError(t, roomsensor.CodeRateLimitExceeded, "")
	require.EqualValues(t, 2, cost, "the key is looked up, the request counted")
	for range 100 {
		cost, got = m.costs(t, m.readKey)
		got.requireError(t, roomsensor.CodeRateLimitExceeded, "")
		require.Zero(t, cost)
	}
	cost, got = m.costs(t, m.key)
	require.Equal(t, http.StatusOK, got.status)
	require.Positive(t, cost)
}

// Decision 24: what is asked of the database does not tell an id that is known
// from one that is not, whether or not the key was used a moment ago.
func TestRefusedKeysCostTheSame(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 24.6", "decision 24.7")
	m := setupMetered(t)
	revoked := m.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead})
	expired := m.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead, ExpiresAt: &start})
	id, _, _ := roomsensor.ParseKey(roomsensor.APIKey, revoked)
	_, err := m.store.RevokeAPIKey(t.Context(), id)
	require.NoError(t, err)
	refused := map[string]struct {
		key  string
		code roomsensor.Code
	}{
		"unknown id":               {"rsk_nobody_secret", roomsensor.CodeAPIKeyInvalid},
		"wrong secret":             {wrongSecret(m.key), roomsensor.CodeAPIKeyInvalid},
		"wrong secret, unused":     {wrongSecret(m.readKey), roomsensor.CodeAPIKeyInvalid},
		"revoked":                  {revoked, roomsensor.CodeAPIKeyRevoked},
		"revoked and wrong secret": {wrongSecret(revoked), roomsensor.CodeAPIKeyInvalid},
		"expired":                  {expired, roomsensor.CodeAPIKeyExpired},
		"expired and wrong secret": {wrongSecret(expired), roomsensor.CodeAPIKeyInvalid},
	}
	for range 3 {
		require.Equal(t, http.StatusOK, m.get(t, "/devices").status) // Its key is in memory from here on.
		for name, tc := range refused {
			cost, got := m.costs(t, tc.key)
			got.requireError(t, tc.code, "")
			require.EqualValues(t, 1, cost, name)
		}
	}
	cost, _ := m.costs(t, m.key)
	require.LessOrEqual(t, cost, int64(2), "a key that is right is not looked up again")
}
