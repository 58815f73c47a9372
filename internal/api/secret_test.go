package api_test

import (
	"encoding/base32"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// A key has a public part, which GET /team shows, and a secret of 32 random
// bytes that stands nowhere in the tables.
func TestKeyIsAPublicPartAndASecret(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 24.1", "decision 24.2", "decision 24.3")
	f := setup(t)
	seen := map[string]bool{}
	for _, key := range []string{f.key, f.readKey} {
		require.Equal(t, http.StatusOK, f.patch(t, `{"metadata":{}}`, withKey(f.key), header("Idempotency-Key", "k")).status)
		parts := strings.Split(key, "_")
		require.Len(t, parts, 3)
		require.Equal(t, "rsk", parts[0])
		require.Contains(t, string(f.get(t, "/team", withKey(key)).body), `"key_id":"`+parts[1]+`"`)
		raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(parts[2]))
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(raw)*8, 256)
		require.False(t, seen[parts[2]])
		seen[parts[2]] = true
		require.NotContains(t, f.dump(t), parts[2])
	}
}

// dump is all that the tables hold of keys and what was done with them.
func (f *fixture) dump(t *testing.T) string {
	t.Helper()
	found, err := f.sql.Query(t.Context(), `SELECT k::text FROM api_keys k UNION ALL
		SELECT i::text || convert_from(response, 'UTF8') FROM idempotency_keys i UNION ALL
		SELECT r::text FROM rate_windows r UNION ALL SELECT c::text FROM rate_counters c`)
	require.NoError(t, err)
	rows, err := pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(t, err)
	require.Greater(t, len(rows), 3)
	return strings.Join(rows, "\n")
}

// What is stored is the SHA-256 of the secret's text as it stands in the key,
// whatever characters it is made of and whoever put it there.
func TestStoredSecretIsTheHashOfItsText(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 24.3")
	f := setup(t)
	for _, secret := range []string{"x", "AbC-9", "with_underscores_", "sécret"} {
		id := uuid.NewString()
		f.exec(t, `INSERT INTO api_keys (key_id, team_id, secret_sha256) VALUES ($1, $2, sha256(convert_to($3, 'UTF8')))`, id, teamID, secret)
		require.Equal(t, http.StatusOK, f.get(t, "/team", withKey("rsk_"+id+"_"+secret)).status, secret)
		for _, wrong := range []string{"rsk_" + id + "_" + secret + "x", "rsk_" + id, "rsk_" + id + "_", "RSK_" + id + "_" + secret, id + "_" + secret} {
			f.get(t, "/team", withKey(wrong)).requireError(t, roomsensor.CodeAPIKeyInvalid, "")
		}
	}
}

// Each replica has just used the key and keeps what it knows of it.
func TestRevokeAndExpiryBiteOnEveryReplica(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 24.11", "decision 24.12")
	f := setup(t)
	expires := start.Add(time.Minute)
	for code, key := range map[roomsensor.Code]roomsensor.Key{
		roomsensor.CodeAPIKeyRevoked: {TeamID: teamID, Scope: roomsensor.ScopeRead},
		roomsensor.CodeAPIKeyExpired: {TeamID: teamID, Scope: roomsensor.ScopeRead, ExpiresAt: &expires},
	} {
		text := f.addKey(t, key)
		replicas := []*replica{f.serve(t, backend{f.store}, nil), f.serve(t, backend{f.store}, nil), f.serve(t, backend{f.store}, nil)}
		if code == roomsensor.CodeAPIKeyExpired {
			f.clock.advance(expires.Sub(f.clock.now()) - time.Microsecond)
		}
		for _, r := range replicas {
			require.Equal(t, http.StatusOK, r.do(t, http.MethodGet, "/v1/team", "", withKey(text)).status)
		}
		if code == roomsensor.CodeAPIKeyRevoked {
			id, _, _ := roomsensor.ParseKey(roomsensor.APIKey, text)
			_, err := f.store.RevokeAPIKey(t.Context(), id)
			require.NoError(t, err)
			f.clock.advance(5*time.Second - time.Microsecond)
		}
		f.clock.advance(time.Microsecond)
		for _, r := range replicas {
			r.do(t, http.MethodGet, "/v1/team", "", withKey(text)).requireError(t, code, "")
			r.do(t, http.MethodGet, "/v1/readings.csv?key="+text, "").requireError(t, code, "")
		}
	}
}

// A revoked key that has expired too is revoked, and says neither to who does
// not know its secret.
func TestRevokeIsToldBeforeExpiry(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 24.7")
	f := setup(t)
	expires := start.Add(-time.Hour)
	key := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead, ExpiresAt: &expires})
	f.get(t, "/team", withKey(key)).requireError(t, roomsensor.CodeAPIKeyExpired, "")
	id, _, _ := roomsensor.ParseKey(roomsensor.APIKey, key)
	_, err := f.store.RevokeAPIKey(t.Context(), id)
	require.NoError(t, err)
	f.replica = f.serve(t, backend{f.store}, nil)
	f.get(t, "/team", withKey(key)).requireError(t, roomsensor.CodeAPIKeyRevoked, "")
	f.get(t, "/team", withKey(wrongSecret(key))).requireError(t, roomsensor.CodeAPIKeyInvalid, "")
	f.get(t, "/readings.csv?key="+wrongSecret(key), withoutKey).requireError(t, roomsensor.CodeAPIKeyInvalid, "")
}

// key= is a credential of the CSV endpoint alone, for GET and HEAD.
func TestKeyInURLIsOfTheExportAlone(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 24.4", "decision 24.5", "decision 24.10")
	f := setup(t)
	device := "/devices/" + deviceID.String()
	for _, path := range []string{"/team", "/devices", "/devices/current", device, device + "/assignments", device + "/readings"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			got := f.do(t, method, path+"?key="+f.key, "", withoutKey)
			require.Equal(t, http.StatusUnauthorized, got.status)
			require.Equal(t, []string{"Bearer"}, got.header.Values("WWW-Authenticate"))
			if method == http.MethodGet {
				got.requireError(t, roomsensor.CodeAPIKeyMissing, "")
			}
		}
		f.get(t, path+"?key="+f.key).requireError(t, roomsensor.CodeValidationFailed, "key")
	}
	f.do(t, http.MethodPatch, device+"?key="+f.key, `{"metadata":{}}`, withoutKey, asJSON).requireError(t, roomsensor.CodeAPIKeyMissing, "")
	require.Equal(t, http.StatusOK, f.do(t, http.MethodHead, "/readings.csv?key="+f.key, "", withoutKey).status)
}
