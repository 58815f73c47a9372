package e2e_test

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/retry"
	"roomsensor/test/conformance"
	"roomsensor/test/copytest"
)

// syncKills is how often the command is killed.
const syncKills = 12

// TestSyncCommand keeps copies while readings and assignments change, an operator deletes readings, the command is killed at
// random moments, and the API is killed once. In the end, each copy equals the tables.
func TestSyncCommand(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A24.1", "A24.2")
	e := newEnv(t)
	api := e.start("api")
	for _, unit := range []string{"dev:1", "dev:2", "dev:3"} {
		e.newDevice(unit)
	}
	e.exec(`INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c)
		SELECT id, timestamptz '2025-01-01T00:00:00Z' + i * INTERVAL '5 minutes', i % 700, 20.5
		FROM devices, generate_series(0, 4999) i WHERE team_id = $1`, e.team)
	stopped, written := make(chan struct{}), make(chan struct{})
	stop := sync.OnceFunc(func() { close(stopped) })
	go func() {
		defer close(written)
		for n := 0; ; n++ {
			select { // Between statements: one that is canceled can still commit later.
			case <-stopped:
				return
			default:
			}
			_, err := e.sql.Exec(t.Context(), `INSERT INTO readings (device_id, bucket_at, co2_ppm, lux)
				SELECT id, timestamptz '2025-01-01T00:00:00Z' + (i * 37 + $2) * INTERVAL '5 minutes', $2, 7
				FROM devices, generate_series(0, 199) i WHERE team_id = $1
				ON CONFLICT (device_id, bucket_at) DO UPDATE SET co2_ppm = excluded.co2_ppm, ingested_at = now()`, e.team, n)
			if err == nil {
				_, err = e.sql.Exec(t.Context(), `WITH old AS (DELETE FROM assignments WHERE label = 'Athlete ' || $2::int - 40),
					moved AS (UPDATE assignments SET label = label || '*' WHERE label = 'Athlete ' || $2::int - 20)
					INSERT INTO assignments (device_id, type, label, started_at, ended_at)
					SELECT id, 'athlete', 'Athlete ' || $2::int, at, at + INTERVAL '1 hour'
					FROM devices, (SELECT timestamptz '2025-01-01T00:00:00Z' + $2 * INTERVAL '1 hour' AS at) WHERE team_id = $1`, e.team, n)
			}
			if err != nil && t.Context().Err() == nil {
				t.Error(err)
				return
			}
		}
	}()
	t.Cleanup(func() { stop(); <-written })

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	copies := map[string]func(require.TestingT, string) []string{
		filepath.Join(t.TempDir(), "copy.db"): func(t require.TestingT, path string) []string {
			return append(copytest.SQLite(t, path), copytest.SQLiteAssignments(t, path)...)
		},
		t.TempDir(): func(t require.TestingT, path string) []string {
			return append(copytest.Parquet(t, path), copytest.ParquetAssignments(t, path)...)
		},
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for path := range copies {
		e.disturbSync(api, path, random)
	}
	stop()
	<-written
	for path, read := range copies {
		e.awaitCopy(api, path, read)
	}
}

// clientCommand returns a command of the program for clients, which is not started yet. The requests of earlier ones do
// not count: on a fast machine, each change wakes so many that the key would have to wait.
func (e *env) clientCommand(address string, args ...string) *exec.Cmd {
	e.t.Helper()
	e.exec("DELETE FROM rate_counters")
	cmd := exec.CommandContext(e.t.Context(), program, args...)
	cmd.Env = []string{"HOME=" + e.t.TempDir(), "ROOMSENSOR_URL=" + address, "ROOMSENSOR_API_KEY=" + e.key}
	return cmd
}

// disturbSync runs the command and kills it, again and again. Meanwhile it deletes readings, and kills the API once.
func (e *env) disturbSync(api *server, path string, random *rand.Rand) {
	e.t.Helper()
	for kill := range syncKills {
		if kill == syncKills/2 {
			api.Kill()
			e.restart(api)
		}
		if kill%4 == 1 {
			e.deleteReadings(time.Date(2025, time.January, 1+random.IntN(16), random.IntN(24), 0, 0, 0, time.UTC))
		}
		e.killSync(api, path, time.Duration(random.Int64N(int64(600*time.Millisecond))))
	}
}

// deleteReadings deletes the readings of a device in two days.
func (e *env) deleteReadings(from time.Time) {
	e.t.Helper()
	deleted := e.command("reading", "delete", "dev:1", "--from", from.Format(time.RFC3339),
		"--to", from.AddDate(0, 0, 2).Format(time.RFC3339), "--reason", "The sensor was wet.", "--yes")
	require.NotZero(e.t, deleted["readings"])
}

// killSync runs the command and kills it after a time.
func (e *env) killSync(api *server, path string, after time.Duration) {
	e.t.Helper()
	command := e.clientCommand(api.url, "sync", path, "--from", "2025-01-01T00:00:00Z")
	require.NoError(e.t, command.Start())
	require.NoError(e.t, retry.Sleep(e.t.Context(), after))
	require.NoError(e.t, command.Process.Kill())
	require.ErrorAs(e.t, command.Wait(), new(*exec.ExitError))
}

// awaitCopy runs the command until the copy equals the tables: changes are visible a little after they are committed.
func (e *env) awaitCopy(api *server, path string, read func(require.TestingT, string) []string) {
	e.t.Helper()
	team := uuid.MustParse(e.team)
	want := append(copytest.Table(e.t, e.sql, team), copytest.Assignments(e.t, e.sql, team, time.Time{})...)
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	var got []string
	run := func() []string {
		out, err := e.clientCommand(api.url, "sync", path, "--once").CombinedOutput()
		require.NoError(e.t, err, string(out))
		return read(e.t, path)
	}
	err := retry.Until(ctx, pollEvery, func(context.Context) (bool, error) {
		got = run()
		return slices.Equal(want, got), nil
	})
	if err != nil {
		require.Equal(e.t, want, got)
	}
}
