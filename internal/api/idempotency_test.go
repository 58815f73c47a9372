package api_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// Spec 8, idempotency, rule 2; decision 23.
func TestAnswersAreKeptForADay(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23.9", "spec 8, idempotency cache", "spec 8, idempotency rule 2")
	f := setupStill(t)
	once := header("Idempotency-Key", "once")
	first := f.patch(t, `{"display_name":"One"}`, once)
	require.Equal(t, http.StatusOK, first.status)

	f.pass(t, 24*time.Hour)
	purged, err := f.store.PurgeIdempotency(t.Context())
	require.NoError(t, err)
	require.Zero(t, purged)
	replay := f.patch(t, `{"display_name":"One"}`, once)
	require.Equal(t, "true", replay.header.Get("Idempotent-Replayed"))
	require.Equal(t, string(first.body), string(replay.body))

	f.pass(t, time.Second)
	again := f.patch(t, `{"display_name":"Two"}`, once)
	require.Empty(t, again.header.Get("Idempotent-Replayed"))
	require.Equal(t, "Two", *decode[patched](t, again).DisplayName)

	f.pass(t, 24*time.Hour)
	replay = f.patch(t, `{"display_name":"Two"}`, once)
	require.Equal(t, "true", replay.header.Get("Idempotent-Replayed"), "what ran again is kept for a day of its own")
}

// Decision 23: who waits for a concurrent request waits for 5 s, whether for
// one of its own process or of another.
func TestWaitingForTheSameKeyEnds(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23.7")
	f := setup(t)
	id, _, _ := roomsensor.ParseKey(roomsensor.APIKey, f.key)
	tx, err := f.sql.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(context.Background())) }()
	_, err = tx.Exec(t.Context(), `INSERT INTO idempotency_keys (key_id, method, path, idempotency_key, body_sha256)
		VALUES ($1, 'PATCH', $2, 'once', '')`, id, "/v1/devices/"+deviceID.String())
	require.NoError(t, err)

	type answered struct {
		response
		after time.Duration
	}
	answers := make(chan answered)
	send := func() {
		began := time.Now()
		got := f.try(t.Context(), http.MethodPatch, "/v1/devices/"+deviceID.String(), `{"display_name":"x"}`,
			withKey(f.key), header("Content-Type", "application/json"), header("Idempotency-Key", "once"))
		answers <- answered{got, time.Since(began)}
	}
	go send()
	require.Eventually(t, func() bool {
		var waits bool
		err := f.sql.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event = 'transactionid')`).Scan(&waits)
		return err == nil && waits
	}, 30*time.Second, time.Millisecond)
	go send()
	for range 2 {
		got := <-answers
		require.NoError(t, got.err)
		got.requireError(t, roomsensor.CodeOverloaded, "")
		require.NotEmpty(t, got.header.Get("Retry-After"))
		require.InDelta(t, 5, got.after.Seconds(), 4)
		t.Logf("503 after %s", got.after)
	}
}

// Spec 8, idempotency rules; decision 23.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23.1", "decision 23.8", "spec 8, idempotency rule 1", "spec 8, idempotency rule 2", "spec 8, idempotency rule 3",
		"spec 8, idempotency rule 4", "spec 7, status 422",
		"spec 7, code validation_failed, 422")
	f := setup(t)
	once := header("Idempotency-Key", "once")
	first := f.patch(t, `{"display_name":"One"}`, once)
	require.Equal(t, http.StatusOK, first.status)
	require.Empty(t, first.header.Get("Idempotent-Replayed"))
	f.nameDevice(t, deviceID, "Two")
	f.clock.advance(time.Hour)

	replay := f.patch(t, `{"display_name":"One"}`, once)
	require.Equal(t, "true", replay.header.Get("Idempotent-Replayed"))
	require.Equal(t, string(first.body), string(replay.body))
	require.NotEqual(t, first.header.Get("X-Request-Id"), replay.header.Get("X-Request-Id"))
	require.Equal(t, "Two", *f.device(t).DisplayName, "the update does not run again")

	differs := f.patch(t, `{"display_name":"One"} `, once)
	require.Equal(t, http.StatusUnprocessableEntity, differs.status, "bodies compare by their bytes")
	differs.requireError(t, roomsensor.CodeValidationFailed, "Idempotency-Key")

	upper := f.do(t, http.MethodPatch, "/devices/"+strings.ToUpper(deviceID.String()), `{"display_name":"One"}`,
		header("Content-Type", "application/json"), once)
	require.Equal(t, "true", upper.header.Get("Idempotent-Replayed"), "the letter case of the id does not matter")

	other := number(0xde, 2)
	f.addDevice(t, teamID, other, "dev:2")
	elsewhere := f.do(t, http.MethodPatch, "/devices/"+other.String(), `{"display_name":"Other"}`,
		header("Content-Type", "application/json"), once)
	require.Equal(t, http.StatusOK, elsewhere.status)
	require.Contains(t, string(elsewhere.body), other.String(), "another path has answers of its own")

	second := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeReadWrite})
	foreign := f.patch(t, `{"display_name":"Three"}`, once, withKey(second))
	require.Equal(t, "Three", *decode[patched](t, foreign).DisplayName, "another key has answers of its own")

	f.exec(t, `UPDATE idempotency_keys SET created_at = now() - INTERVAL '24 hours 1 second'`)
	again := f.patch(t, `{"display_name":"Four"}`, once)
	require.Equal(t, "Four", *decode[patched](t, again).DisplayName, "after 24 hours it runs again")
}

func TestFailuresAreNotReplayed(t *testing.T) {
	t.Parallel()
	f := setup(t)
	once := header("Idempotency-Key", "once")
	f.patch(t, `{"display_name":""}`, once).requireError(t, roomsensor.CodeValidationFailed, "display_name")
	require.Equal(t, http.StatusOK, f.patch(t, `{"display_name":"x"}`, once).status)
}

func TestConcurrentRequestsWithOneKey(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23.5")
	f := setup(t)
	replicas := []*replica{f.replica, f.serve(t, backend{openStore(t, f.url)}, nil)}
	const clients = 100
	got := make(chan response, clients)
	for i := range clients {
		go func() {
			got <- replicas[i%2].persist(t.Context(), http.MethodPatch, "/v1/devices/"+deviceID.String(), `{"display_name":"Once"}`,
				withKey(f.key), header("Content-Type", "application/json"), header("Idempotency-Key", "all"))
		}()
	}
	ran := 0
	for range clients {
		answer := <-got
		require.Equal(t, http.StatusOK, answer.status, string(answer.body))
		if answer.header.Get("Idempotent-Replayed") == "" {
			ran++
		}
	}
	require.Equal(t, 1, ran)
}

// persist is try by a client that sends again when it is told to: on a machine that is busy enough, who waits for a
// hundred others waits longer than the 5 seconds of decision 23.
func (r *replica) persist(ctx context.Context, method, path, body string, options ...option) response {
	for {
		got := r.try(ctx, method, path, body, options...)
		seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
		if got.status != http.StatusServiceUnavailable || err != nil {
			return got
		}
		select {
		case <-ctx.Done():
			return got
		case <-time.After(time.Duration(seconds) * time.Second):
		}
	}
}

// A retry without Idempotency-Key runs again, and undoes what came in between.
func TestRetriesWithoutIdempotencyKey(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 8, idempotency rule 5", "spec 4, PATCH, Idempotency-Key")
	f := setup(t)
	for _, name := range []string{"One", "Two", "One"} {
		got := f.patch(t, `{"display_name":"`+name+`"}`)
		require.Equal(t, http.StatusOK, got.status)
		require.Empty(t, got.header.Get("Idempotent-Replayed"))
		require.Equal(t, name, *f.device(t).DisplayName, "the later one wins")
	}
}
