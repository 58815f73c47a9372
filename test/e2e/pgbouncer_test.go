package e2e_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/test/dbtest"
)

// poolSize is the number of sessions of PgBouncer per role: far fewer than the connections of the processes, so that the
// transactions of one connection run in different sessions.
const poolSize = 4

// TestPgBouncer runs two API processes, a receiver and two workers through PgBouncer.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]struct {
		pooler   []string
		settings map[string]string
	}{
		"transaction mode": {
			[]string{"pool_mode = transaction", fmt.Sprint("default_pool_size = ", poolSize)},
			map[string]string{"PGBOUNCER": "true"},
		},
		"session mode": {
			[]string{
				"pool_mode = session", "default_pool_size = 100",
				"ignore_startup_parameters = statement_timeout,lock_timeout,idle_in_transaction_session_timeout,synchronous_commit,jit",
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newStreamEnv(t)
			e.pooler = dbtest.PgBouncer(t, mode.pooler...)
			maps.Copy(e.settings, mode.settings)
			e.apis = []*server{e.start("api"), e.start("api")}
			e.receiver = e.start("ingest", "--no-worker")
			workers := []*server{e.start("ingest", "--no-receiver"), e.start("ingest", "--no-receiver")}
			device := e.checkPooledUploads()
			e.checkPooledPatch(device)
			e.checkPooledRateLimit()
			if mode.settings != nil {
				require.LessOrEqual(t, value[int](e.env, `SELECT max(n) FROM (SELECT count(*) AS n FROM pg_stat_activity
					WHERE datname = current_database() AND usename LIKE 'roomsensor_test%' GROUP BY usename) s`), poolSize)
			}
			for _, s := range append(append(workers, e.receiver), e.apis...) {
				e.stop(s)
			}
		})
	}
}

// checkPooledUploads uploads the log of a device in large uploads, which are copied, and then again in small ones, which
// are compared. Pages, snapshots and exports show it. It returns the device.
func (e *streamEnv) checkPooledUploads() (device string) {
	e.t.Helper()
	const unit, seed, n = "dev:1", 3, 3000
	device = e.newDevice(unit, "--name", "Hall")
	samples := officeSamples(seed, n)
	rows := expectedCSV(e.t, device, "Hall", samples)
	var stored []string
	for _, size := range []int{n, 7} {
		for _, part := range packed(unit, samples, size) {
			require.Equal(e.t, http.StatusAccepted, e.upload(part).status)
		}
		e.settle()
		csv := e.api().csv(february2015)
		_, body, _ := strings.Cut(csv, "\n")
		require.Equal(e.t, rows, strings.Split(strings.TrimSuffix(body, "\n"), "\n"))
		if stored != nil {
			require.Equal(e.t, stored, e.storedReadings())
		}
		stored = e.storedReadings()
		rand.New(rand.NewPCG(seed, 2)).Shuffle(n, func(a, b int) { samples[a], samples[b] = samples[b], samples[a] })
	}
	require.Len(e.t, e.api().readings(device, february2015), len(rows))
	shown := e.api().current()[0]
	require.Equal(e.t, client.StatusOnline, shown.Status)
	require.NotNil(e.t, shown.Latest)
	return device
}

// checkPooledPatch sends a PATCH to one process, and again to the other.
func (e *streamEnv) checkPooledPatch(device string) {
	e.t.Helper()
	patched := &replicasEnv{env: e.env, device: device}
	for i, api := range e.apis {
		got := patched.patch(api, "Foyer", "foyer-1")
		require.Equal(e.t, http.StatusOK, got.status, got.body)
		require.Equal(e.t, i > 0, got.header.Get("Idempotent-Replayed") == "true")
	}
	require.Equal(e.t, "Foyer", *e.api().device(device).DisplayName)
}

// checkPooledRateLimit sends more concurrent requests than a key may send and PgBouncer has sessions.
func (e *streamEnv) checkPooledRateLimit() {
	e.t.Helper()
	_, limited := e.newKey()
	require.Equal(e.t, 600, e.burst(limited, 4*poolSize, 40))
}

// burst sends requests with a key to both processes at once and returns how many succeeded.
func (e *streamEnv) burst(key string, clients, each int) (succeeded int) {
	e.t.Helper()
	results := make(chan error)
	for i := range clients {
		api := e.at(e.apis[i%2], key)
		go func() {
			for range each {
				_, err := api.Team(e.t.Context())
				for client.HasCode(err, client.CodeOverloaded) { // It waited too long for one of the few sessions.
					_, err = api.Team(e.t.Context())
				}
				results <- err
			}
		}()
	}
	for range clients * each {
		if err := <-results; err != nil {
			require.True(e.t, client.HasCode(err, client.CodeRateLimitExceeded), err)
		} else {
			succeeded++
		}
	}
	return succeeded
}
