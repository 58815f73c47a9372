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

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// asOnce sends a PATCH of the fixture's device, spelt in a way, under an Idempotency-Key.
func (f *fixture) asOnce(t *testing.T, device, key, body string) response {
	t.Helper()
	return f.do(t, http.MethodPatch, "/devices/"+device, body, header("Content-Type", "application/json"), header("Idempotency-Key", key))
}

func TestScopeOfAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23.1", "decision 23.8")
	f := setup(t)
	const body = `{"metadata":{"a":"b"}}`
	id := deviceID.String()
	seen := map[string]bool{}
	for _, tc := range []struct {
		device, key string
		replays     bool
	}{
		{id, "key", false},
		{id, "key", true},
		{strings.ToUpper(id), "key", true},
		{strings.ToUpper(id[:20]) + id[20:], "key", true},
		{"%" + "64" + id[1:], "key", true},
		{id + "?", "key", true},
		{id + "?&&", "key", true},
		{id, "  key\t", true},
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
		got := f.asOnce(t, tc.device, tc.key, body)
		require.Equal(t, http.StatusOK, got.status, string(got.body))
		replayed := got.header.Values("Idempotent-Replayed")
		if tc.replays {
			require.Equal(t, []string{"true"}, replayed, "%s %s", tc.device, tc.key)
		} else {
			require.Empty(t, replayed, "%s %s", tc.device, tc.key)
		}
		require.False(t, seen[got.header.Get("X-Request-Id")])
		seen[got.header.Get("X-Request-Id")] = true
	}
}

func TestBodiesCompareByTheirBytes(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23.2")
	f := setup(t)
	const body = `{"display_name":"x","metadata":{"a":"b"}}`
	require.Equal(t, http.StatusOK, f.asOnce(t, deviceID.String(), "key", body).status)
	for _, other := range []string{
		body + " ", body + "\n", " " + body, `{"display_name": "x","metadata":{"a":"b"}}`, `{"metadata":{"a":"b"},"display_name":"x"}`,
		`{"display_name":"\u0078","metadata":{"a":"b"}}`, `{"display_name":"y","metadata":{"a":"b"}}`, `{"metadata":{}}`,
	} {
		got := f.asOnce(t, deviceID.String(), "key", other)
		require.Equal(t, http.StatusUnprocessableEntity, got.status, other)
		got.requireError(t, roomsensor.CodeValidationFailed, "Idempotency-Key")
		require.Empty(t, got.header.Get("Idempotent-Replayed"))
	}
	require.Equal(t, "true", f.asOnce(t, deviceID.String(), "key", body).header.Get("Idempotent-Replayed"))
}

// Each request that fails leaves its key free for any other body.
func TestOnlyAnswersOfUpdatesAreKept(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23.3")
	f := setup(t)
	full := `{"metadata":{"k":"v"`
	for i := range 50 {
		full += fmt.Sprintf(`,"k%d":"v"`, i)
	}
	full += "}}"
	absent, other := number(0xde, 9), deviceID.String()
	for name, failing := range map[string]attempt{
		"400":     {"", other, `{"x":1}`, nil},
		"tags":    {"", other, full, nil},
		"413":     {"", other, strings.Repeat(" ", 64<<10+1), nil},
		"501":     {"", other, `{"assignment":1}`, nil},
		"403":     {"", other, `{"display_name":"x"}`, []option{withKey(f.readKey)}},
		"404":     {"", absent.String(), `{"display_name":"x"}`, nil},
		"no JSON": {"", other, `{"display_name":"x"}`, []option{func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }}},
	} {
		options := append([]option{header("Content-Type", "application/json"), header("Idempotency-Key", name)}, failing.options...)
		for range 2 {
			got := f.do(t, http.MethodPatch, "/devices/"+failing.path, failing.body, options...)
			require.GreaterOrEqual(t, got.status, http.StatusBadRequest, name)
			require.Empty(t, got.header.Get("Idempotent-Replayed"))
		}
		if failing.path == absent.String() {
			f.addDevice(t, teamID, absent, "dev:9")
		}
		got := f.asOnce(t, failing.path, name, `{"display_name":"`+name+`"}`)
		require.Equal(t, name, *decode[patched](t, got).DisplayName)
		require.Empty(t, got.header.Get("Idempotent-Replayed"))
	}
}

// Where one of the two cannot be written the other is not: a trigger refuses first the one, then the other.
func TestUpdateAndAnswerAreOneTransaction(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23.3", "decision 23.4")
	f := setup(t)
	f.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END'`)
	for _, table := range []string{"idempotency_keys", "devices"} {
		f.exec(t, `CREATE TRIGGER refuse BEFORE UPDATE ON `+table+` FOR EACH ROW EXECUTE FUNCTION refuse()`)
		f.asOnce(t, deviceID.String(), table, `{"display_name":"Never"}`).requireError(t, roomsensor.CodeInternalError, "")
		require.NotContains(t, string(f.get(t, "/devices").body), "Never")
		f.exec(t, `DROP TRIGGER refuse ON `+table)
		got := f.asOnce(t, deviceID.String(), table, `{"display_name":"`+table+`"}`)
		require.Equal(t, table, *decode[patched](t, got).DisplayName)
		require.Empty(t, got.header.Get("Idempotent-Replayed"))
	}
}

// Another request holds the key when this one comes, and then ends in one way or the other.
func TestConcurrentRequestWaits(t *testing.T) {
	t.Parallel()
	f := setup(t)
	id, _, _ := roomsensor.ParseKey(roomsensor.APIKey, f.key)
	kept := string(f.patch(t, `{"display_name":"kept"}`).body)
	for name, tc := range map[string]struct {
		sentence string
		end      func(pgx.Tx) error
		body     string
		status   int
		answer   string
	}{
		"ran": {"decision 23.5", func(tx pgx.Tx) error { return tx.Commit(t.Context()) }, `{"display_name":"x"}`, http.StatusOK, kept},
		"ran with another body": {
			"decision 23.5", func(tx pgx.Tx) error { return tx.Commit(t.Context()) }, `{"display_name":"y"}`, http.StatusUnprocessableEntity, `"param":"Idempotency-Key"`,
		},
		"failed": {"decision 23.6", func(tx pgx.Tx) error { return tx.Rollback(t.Context()) }, `{"display_name":"x"}`, http.StatusOK, `"display_name":"x"`},
	} {
		conformance.Covers(t, tc.sentence)
		first, err := f.sql.Begin(t.Context())
		require.NoError(t, err)
		_, err = first.Exec(t.Context(), `INSERT INTO idempotency_keys (key_id, method, path, idempotency_key, body_sha256, response)
			VALUES ($1, 'PATCH', $2, $3, sha256('{"display_name":"x"}'), $4)`, id, "/v1/devices/"+deviceID.String(), name, []byte(kept))
		require.NoError(t, err)
		answers := make(chan response, 1)
		go func() {
			answers <- f.try(t.Context(), http.MethodPatch, "/v1/devices/"+deviceID.String(), tc.body,
				withKey(f.key), header("Content-Type", "application/json"), header("Idempotency-Key", name))
		}()
		f.awaitLockWaiter(t, 0)
		require.Empty(t, answers, "it waits")
		require.NoError(t, tc.end(first))
		got := <-answers
		require.NoError(t, got.err)
		require.Equal(t, tc.status, got.status, "%s: %s", name, got.body)
		require.Contains(t, string(got.body), tc.answer, name)
		require.Equal(t, tc.answer == kept, got.header.Get("Idempotent-Replayed") == "true", name)
	}
}

// awaitLockWaiter waits until a connection other than one waits for a lock of another transaction, and returns which.
func (f *fixture) awaitLockWaiter(t *testing.T, other int) (pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		return f.sql.QueryRow(t.Context(), `SELECT pid FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND pid <> $1`, other).Scan(&pid) == nil
	}, 30*time.Second, 5*time.Millisecond)
	return pid
}

// The client of the first request goes away while its update waits for the device: the next in the queue runs.
func TestFirstOfTwoIsGivenUp(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23.6")
	f := setup(t)
	holder, err := f.sql.Begin(t.Context())
	require.NoError(t, err)
	_, err = holder.Exec(t.Context(), `SELECT FROM devices FOR UPDATE`)
	require.NoError(t, err)
	send := func(ctx context.Context) <-chan response {
		answers := make(chan response, 1)
		go func() {
			answers <- f.try(ctx, http.MethodPatch, "/v1/devices/"+deviceID.String(), `{"display_name":"x"}`,
				withKey(f.key), header("Content-Type", "application/json"), header("Idempotency-Key", "key"))
		}()
		return answers
	}
	ctx, giveUp := context.WithCancel(t.Context())
	first := send(ctx)
	pid := f.awaitLockWaiter(t, 0)
	second := send(t.Context())
	giveUp()
	require.Error(t, (<-first).err)
	f.awaitLockWaiter(t, pid)
	require.NoError(t, holder.Commit(t.Context()))
	got := <-second
	require.NoError(t, got.err)
	require.Equal(t, http.StatusOK, got.status, string(got.body))
	require.Empty(t, got.header.Get("Idempotent-Replayed"))
	require.Equal(t, "true", f.asOnce(t, deviceID.String(), "key", `{"display_name":"x"}`).header.Get("Idempotent-Replayed"))
}
