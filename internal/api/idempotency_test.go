package api_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// Spec 8, idempotency, rule 2; decision 23.
func TestAnswersAreKeptForADay(t *testing.T) {
	t.Parallel()
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
