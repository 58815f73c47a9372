package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// patchOnce sends a PATCH with an Idempotency-Key; device is the id as it is in the path.
func (f *fixture) patchOnce(t *testing.T, device, key, body string, options ...option) response {
	t.Helper()
	return f.do(t, http.MethodPatch, "/devices/"+device, body, append([]option{asJSON, idempotencyKey(key)}, options...)...)
}

func (r response) requireReplayed(t *testing.T, want bool) {
	t.Helper()
	r.requireOK(t)
	if want {
		require.Equal(t, []string{"true"}, r.header.Values("Idempotent-Replayed"))
	} else {
		require.Empty(t, r.header.Values("Idempotent-Replayed"))
	}
}

func TestIdempotencyReplay(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23 a", "decision 23 h", "spec 8, idempotency, rule 1", "spec 8, idempotency, rule 2",
		"spec 8, idempotency, rule 4")
	f := setup(t)
	id, other := deviceID.String(), testID(0xde, 2).String()
	f.addDevice(t, teamID, testID(0xde, 2), "dev:2")
	const body = `{"display_name":"x","metadata":{"a":"b"}}`
	first := f.patchOnce(t, id, "key", body)
	first.requireReplayed(t, false)
	f.nameDevice(t, deviceID, "Two")
	f.clock.advance(time.Hour)
	replay := f.patchOnce(t, id, "key", body)
	replay.requireReplayed(t, true)
	require.Equal(t, string(first.body), string(replay.body))
	require.NotEqual(t, first.header.Get("X-Request-Id"), replay.header.Get("X-Request-Id"))
	require.Equal(t, "Two", *f.device(t).DisplayName, "the update does not run again")

	// The scope is the API key, the path without the query and the letter case of the id, and the Idempotency-Key.
	for _, tc := range []struct {
		device, key string
		replays     bool
	}{
		{strings.ToUpper(id), "key", true},
		{strings.ToUpper(id[:20]) + id[20:], "key", true},
		{"%64" + id[1:], "key", true},
		{id + "?", "key", true},
		{id + "?&&", "key", true},
		{id, "  key\t", true},
		{other, "key", false},
		{id, "Key", false},
		{id, "key2", false},
		{id, "ke", false},
		{id, "ké", false},
		{id, "ke\u0301", false},
		{id, "%6bey", false},
		{id, `"key"`, false},
		{id, "key,key", false},
		{id, strings.Repeat("k", 255), false},
		{id, strings.Repeat("k", 254) + "K", false},
		{id, "key", true},
	} {
		f.patchOnce(t, tc.device, tc.key, body).requireReplayed(t, tc.replays)
	}
	f.patchOnce(t, id, "key", body, withKey(f.newKey(t, roomsensor.ScopeReadWrite))).requireReplayed(t, false)

	// Bodies compare by their bytes.
	conformance.Covers(t, "decision 23 b", "spec 8, idempotency, rule 3", "spec 7, status_422", "spec 7, reused_idempotency_key")
	for _, another := range []string{
		body + " ", body + "\n", " " + body, `{"display_name": "x","metadata":{"a":"b"}}`, `{"metadata":{"a":"b"},"display_name":"x"}`,
		`{"display_name":"\u0078","metadata":{"a":"b"}}`, `{"display_name":"y","metadata":{"a":"b"}}`, `{"metadata":{}}`,
	} {
		got := f.patchOnce(t, id, "key", another)
		require.Equal(t, http.StatusUnprocessableEntity, got.status, another)
		got.requireInvalid(t, "Idempotency-Key")
		require.Empty(t, got.header.Get("Idempotent-Replayed"))
	}
	f.patchOnce(t, id, "key", body).requireReplayed(t, true)
}

// Only the response of an update that ran is stored; after any other, the key is free for another body.
func TestIdempotencyOfErrors(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23 c")
	f := setup(t)
	var tags strings.Builder
	for i := range 51 {
		fmt.Fprintf(&tags, `"k%d":"v",`, i)
	}
	own, absent := deviceID.String(), testID(0xde, 9)
	for name, failing := range map[string]request{
		"400":      {"", own, `{"x":1}`, nil},
		"51 keys":  {"", own, `{"metadata":{` + strings.TrimSuffix(tags.String(), ",") + `}}`, nil},
		"413":      {"", own, strings.Repeat(" ", 64<<10+1), nil},
		"501":      {"", own, `{"assignment":1}`, nil},
		"403":      {"", own, `{"display_name":"x"}`, []option{withKey(f.readKey)}},
		"404":      {"", absent.String(), `{"display_name":"x"}`, nil},
		"not JSON": {"", own, `{"display_name":"x"}`, []option{setHeader("Content-Type", "text/plain")}},
	} {
		for range 2 {
			got := f.patchOnce(t, failing.path, name, failing.body, failing.options...)
			require.GreaterOrEqual(t, got.status, http.StatusBadRequest, name)
			require.Empty(t, got.header.Get("Idempotent-Replayed"))
		}
		if failing.path == absent.String() {
			f.addDevice(t, teamID, absent, "dev:9")
		}
		got := f.patchOnce(t, failing.path, name, `{"display_name":"`+name+`"}`)
		got.requireReplayed(t, false)
		require.Equal(t, name, *decode[patched](t, got).DisplayName)
	}

	// The response is stored in the transaction of the update: a trigger refuses one, then the other.
	conformance.Covers(t, "decision 23 d")
	f.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END'`)
	for _, table := range []string{"idempotency_keys", "devices"} {
		f.exec(t, `CREATE TRIGGER refuse BEFORE UPDATE ON `+table+` FOR EACH ROW EXECUTE FUNCTION refuse()`)
		f.patchOnce(t, own, table, `{"display_name":"Never"}`).requireError(t, roomsensor.CodeInternalError, "")
		require.NotContains(t, string(f.get(t, "/devices").body), "Never")
		f.exec(t, `DROP TRIGGER refuse ON `+table)
		got := f.patchOnce(t, own, table, `{"display_name":"`+table+`"}`)
		got.requireReplayed(t, false)
		require.Equal(t, table, *decode[patched](t, got).DisplayName)
	}
}

// Responses are kept for 24 hours (decision 23 i).
func TestIdempotencyExpiry(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23 i", "spec 8, idempotency_cache", "spec 8, idempotency, rule 2")
	f := setupWithDatabaseClock(t)
	first := f.patch(t, `{"display_name":"One"}`, idempotencyKey("k")).requireOK(t)
	f.advanceBoth(t, day)
	purged, err := f.store.PurgeIdempotency(t.Context())
	require.NoError(t, err)
	require.Zero(t, purged)
	replay := f.patch(t, `{"display_name":"One"}`, idempotencyKey("k"))
	replay.requireReplayed(t, true)
	require.Equal(t, string(first.body), string(replay.body))

	f.advanceBoth(t, time.Second)
	again := f.patch(t, `{"display_name":"Two"}`, idempotencyKey("k"))
	again.requireReplayed(t, false)
	require.Equal(t, "Two", *decode[patched](t, again).DisplayName)
	f.advanceBoth(t, day)
	f.patch(t, `{"display_name":"Two"}`, idempotencyKey("k")).requireReplayed(t, true)
}

// beginUpdate opens the transaction of another request with an Idempotency-Key, which holds its entry.
func (f *fixture) beginUpdate(t *testing.T, key, body string, response []byte) pgx.Tx {
	t.Helper()
	tx, err := f.sql.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // An error if the transaction ended.
	_, err = tx.Exec(t.Context(), `INSERT INTO idempotency_keys (key_id, method, path, idempotency_key, body_sha256, response)
		VALUES ($1, 'PATCH', $2, $3, sha256($4), $5)`, keyID(f.key), "/v1"+devicePath, key, []byte(body), response)
	require.NoError(t, err)
	return tx
}

// startPatch sends a PATCH with an Idempotency-Key in the background.
func (f *fixture) startPatch(ctx context.Context, key, body string) <-chan response {
	got := make(chan response, 1)
	go func() {
		got <- f.try(ctx, http.MethodPatch, "/v1"+devicePath, body, withKey(f.key), asJSON, idempotencyKey(key))
	}()
	return got
}

// awaitLockWait waits until a connection other than a given one waits for a lock, and returns its pid.
func (f *fixture) awaitLockWait(t *testing.T, other int) (pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		return f.sql.QueryRow(t.Context(), `SELECT pid FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND pid <> $1`, other).Scan(&pid) == nil
	}, patience, 5*time.Millisecond)
	return pid
}

// A request waits for a concurrent one with the same key: it replays its response, or runs if that one did not.
func TestIdempotencyConcurrency(t *testing.T) {
	t.Parallel()
	f := setup(t)
	kept := string(f.patch(t, `{"display_name":"kept"}`).body)
	commit := func(tx pgx.Tx) error { return tx.Commit(t.Context()) }
	rollback := func(tx pgx.Tx) error { return tx.Rollback(t.Context()) }
	for name, tc := range map[string]struct {
		covers string
		end    func(pgx.Tx) error
		body   string
		status int
		want   string
	}{
		"ran":                   {"decision 23 e", commit, `{"display_name":"x"}`, http.StatusOK, kept},
		"ran with another body": {"decision 23 e", commit, `{"display_name":"y"}`, http.StatusUnprocessableEntity, `"param":"Idempotency-Key"`},
		"failed":                {"decision 23 f", rollback, `{"display_name":"x"}`, http.StatusOK, `"display_name":"x"`},
	} {
		conformance.Covers(t, tc.covers)
		first := f.beginUpdate(t, name, `{"display_name":"x"}`, []byte(kept))
		second := f.startPatch(t.Context(), name, tc.body)
		f.awaitLockWait(t, 0)
		require.Empty(t, second, "it waits")
		require.NoError(t, tc.end(first))
		got := <-second
		require.NoError(t, got.err)
		require.Equal(t, tc.status, got.status, "%s: %s", name, got.body)
		require.Contains(t, string(got.body), tc.want, name)
		require.Equal(t, tc.want == kept, got.header.Get("Idempotent-Replayed") == "true", name)
	}

	// The client of the first request disconnects while its update waits for the device: the second request runs.
	conformance.Covers(t, "decision 23 f")
	holder, err := f.sql.Begin(t.Context())
	require.NoError(t, err)
	_, err = holder.Exec(t.Context(), `SELECT FROM devices FOR UPDATE`)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	first := f.startPatch(ctx, "canceled", `{"display_name":"x"}`)
	pid := f.awaitLockWait(t, 0)
	second := f.startPatch(t.Context(), "canceled", `{"display_name":"x"}`)
	cancel()
	require.Error(t, (<-first).err)
	f.awaitLockWait(t, pid)
	require.NoError(t, holder.Commit(t.Context()))
	got := <-second
	require.NoError(t, got.err)
	got.requireReplayed(t, false)
	f.patchOnce(t, deviceID.String(), "canceled", `{"display_name":"x"}`).requireReplayed(t, true)
}

// A request waits for at most 5 seconds, for a request of its own process and of another one (decision 23 g).
func TestIdempotencyTimeout(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23 g")
	f := setup(t)
	f.beginUpdate(t, "k", "", []byte{})
	first := f.startPatch(t.Context(), "k", `{"display_name":"x"}`)
	f.awaitLockWait(t, 0)
	second := f.startPatch(t.Context(), "k", `{"display_name":"x"}`)
	for _, waiting := range []<-chan response{first, second} {
		got := <-waiting
		require.NoError(t, got.err)
		got.requireError(t, roomsensor.CodeOverloaded, "")
		require.Equal(t, "2", got.header.Get("Retry-After"), "at the deadline of the request, it would be 5")
	}
}
