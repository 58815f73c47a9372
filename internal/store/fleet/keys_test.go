package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// TestKeyUses checks both kinds of keys: what is stored of their uses, and that it belongs to the right key.
func TestKeyUses(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, kind := range []struct {
		name   string
		create func(context.Context, roomsensor.Key) (roomsensor.Key, error)
		list   func(context.Context, uuid.UUID) ([]roomsensor.Key, error)
		record func(context.Context, []roomsensor.KeyUse) error
	}{
		{"API keys", f.CreateAPIKey, f.APIKeys, f.RecordAPIKeyUses},
		{"ingest keys", f.CreateIngestKey, f.TeamIngestKeys, f.RecordIngestKeyUses},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			for _, id := range []string{"used", "unused"} {
				_, err := kind.create(t.Context(), roomsensor.Key{ID: id, TeamID: f.TeamID, Scope: roomsensor.ScopeRead})
				require.NoError(t, err)
			}
			lastUse := func() *roomsensor.KeyUse {
				keys, err := kind.list(t.Context(), f.TeamID)
				require.NoError(t, err)
				require.Len(t, keys, 2)
				require.Nil(t, keys[1].LastUse)
				return keys[0].LastUse
			}
			require.Nil(t, lastUse())
			first := at("2026-11-20T10:00:30Z")
			for _, step := range []struct {
				use    roomsensor.KeyUse
				stored bool
			}{
				{roomsensor.KeyUse{KeyID: "used", At: first, Client: "curl/8"}, true},
				{roomsensor.KeyUse{KeyID: "used", At: first.Add(29 * time.Second), Client: "another replica"}, false},
				{roomsensor.KeyUse{KeyID: "used", At: first.Add(-time.Hour), Client: "a slow replica"}, false},
				{roomsensor.KeyUse{KeyID: "used", At: first.Add(30 * time.Second)}, true},
			} {
				before := lastUse()
				require.NoError(t, kind.record(t.Context(), []roomsensor.KeyUse{{KeyID: "deleted", At: step.use.At}, step.use}))
				if step.stored {
					before = &step.use
				}
				require.Equal(t, before, lastUse())
			}
		})
	}
}

// TestIngestKeyUseChangesNoKey checks that every receiver does not read a key again because it was used.
func TestIngestKeyUseChangesNoKey(t *testing.T) {
	t.Parallel()
	f := setup(t)
	_, err := f.CreateIngestKey(t.Context(), roomsensor.Key{ID: "key", TeamID: f.TeamID})
	require.NoError(t, err)
	changedIn := func() (transaction int64) {
		require.NoError(t, f.SQL.QueryRow(t.Context(), "SELECT changed_in FROM ingest_keys").Scan(&transaction))
		return transaction
	}
	before := changedIn()
	require.NoError(t, f.RecordIngestKeyUses(t.Context(), []roomsensor.KeyUse{{KeyID: "key", At: time.Now()}}))
	require.Equal(t, before, changedIn())
}

// TestKeysOfTeam checks that only the team of a key can change it, and that an id is used once.
func TestKeysOfTeam(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, kind := range []struct {
		name   string
		create func(context.Context, roomsensor.Key) (roomsensor.Key, error)
		revoke func(context.Context, uuid.UUID, string) (roomsensor.Key, error)
		rotate func(context.Context, uuid.UUID, string, roomsensor.Key, time.Duration) (old, created roomsensor.Key, err error)
	}{
		{"API keys", f.CreateAPIKey, f.RevokeAPIKey, f.RotateAPIKey},
		{"ingest keys", f.CreateIngestKey, f.RevokeIngestKey, f.RotateIngestKey},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			_, err := kind.create(t.Context(), roomsensor.Key{ID: "a", TeamID: f.TeamID, Scope: roomsensor.ScopeRead})
			require.NoError(t, err)
			_, err = kind.create(t.Context(), roomsensor.Key{ID: "a", TeamID: f.TeamID, Scope: roomsensor.ScopeRead})
			require.ErrorIs(t, err, roomsensor.ErrKeyExists)
			other := uuid.New()
			_, _, err = kind.rotate(t.Context(), other, "a", roomsensor.Key{ID: "b"}, time.Hour)
			require.ErrorIs(t, err, roomsensor.ErrNotFound)
			_, err = kind.revoke(t.Context(), other, "a")
			require.ErrorIs(t, err, roomsensor.ErrNotFound)
			_, _, err = kind.rotate(t.Context(), f.TeamID, "a", roomsensor.Key{ID: "b"}, time.Hour)
			require.NoError(t, err)
			_, _, err = kind.rotate(t.Context(), f.TeamID, "a", roomsensor.Key{ID: "b"}, time.Minute)
			require.ErrorIs(t, err, roomsensor.ErrKeyExists)
			_, err = kind.revoke(t.Context(), f.TeamID, "a")
			require.NoError(t, err)
		})
	}
}

// TestIngestKeysChanged checks that a receiver sees every change once it is committed, also if the transaction began
// before the last query of the receiver, or has an earlier time.
func TestIngestKeysChanged(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const insert = `INSERT INTO ingest_keys (key_id, team_id, secret_sha256, created_at) VALUES ($1, $2, sha256(''), '2001-01-01')`
	late, err := f.SQL.Begin(t.Context())
	require.NoError(t, err)
	_, err = late.Exec(t.Context(), insert, "late", f.TeamID)
	require.NoError(t, err)
	f.Exec(t, insert, "early", f.TeamID)
	f.Exec(t, insert, "unchanged", f.TeamID)

	position := func() roomsensor.KeyPosition {
		p, err := f.IngestKeyPosition(t.Context())
		require.NoError(t, err)
		return p
	}
	changed := func(since roomsensor.KeyPosition) (ids []string) {
		keys, err := f.IngestKeysChanged(t.Context(), since, 10)
		require.NoError(t, err)
		for i := range keys {
			ids = append(ids, keys[i].ID)
		}
		return ids
	}
	before := position()
	require.NotContains(t, changed(before), "late")
	require.NoError(t, late.Commit(t.Context()))
	require.Contains(t, changed(before), "late")

	// A position is the oldest transaction on the server, which may be one of another database.
	oldest := func() (transaction int64) {
		require.NoError(t, f.SQL.QueryRow(t.Context(), "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint").Scan(&transaction))
		return transaction
	}
	first, middle, last := oldest(), position(), oldest()
	require.LessOrEqual(t, first, middle.OldestRunning)
	require.LessOrEqual(t, middle.OldestRunning, last)

	// setChangedIn sets the transactions of all keys. The test does not wait until their real ones are before a position,
	// because a transaction of another test may run for long.
	setChangedIn := func(transaction int64) {
		f.Exec(t, "ALTER TABLE ingest_keys DISABLE TRIGGER ingest_key_changed")
		f.Exec(t, "UPDATE ingest_keys SET changed_in = $1", transaction)
		f.Exec(t, "ALTER TABLE ingest_keys ENABLE TRIGGER ingest_key_changed")
	}
	setChangedIn(middle.OldestRunning - 1)
	require.Empty(t, changed(middle))
	_, err = f.RevokeIngestKey(t.Context(), f.TeamID, "early")
	require.NoError(t, err)
	require.Equal(t, []string{"early"}, changed(middle))

	setChangedIn(1_000_000_000_000) // The table was restored from a server with more transactions.
	require.Empty(t, changed(middle))
	_, err = f.RevokeIngestKey(t.Context(), f.TeamID, "unchanged")
	require.NoError(t, err)
	require.Equal(t, []string{"unchanged"}, changed(middle))
}
