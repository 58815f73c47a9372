package api_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/openapitest"
	"roomsensor/internal/roomsensor"
)

// fault is something that a real database does to every operation.
type fault struct {
	code   roomsensor.Code
	begin  func(t *testing.T, f *fixture) (end func())
	logged string // what tells that it was this fault
}

var faults = map[string]fault{
	// Whoever holds the lock, the request does not wait for long.
	"tables are locked":      {roomsensor.CodeOverloaded, locking("teams, devices, assignments, readings"), "55P03"},
	"keys are locked":        {roomsensor.CodeOverloaded, locking("api_keys"), "55P03"},
	"the rate is locked":     {roomsensor.CodeOverloaded, locking("rate_windows"), "55P03"},
	"a query is broken off":  {roomsensor.CodeOverloaded, killing, "57P01"},
	"it takes no writes":     {roomsensor.CodeOverloaded, readOnly, "25006"},
	"tables are missing":     {roomsensor.CodeInternalError, renaming("teams", "devices", "assignments", "readings"), "42P01"},
	"keys are missing":       {roomsensor.CodeInternalError, renaming("api_keys"), "42P01"},
	"the rate has no window": {roomsensor.CodeInternalError, renaming("rate_windows"), "42P01"},
}

// Whatever the database does, an operation of the document answers with a status of the document, in words of its own,
// and works again once the database does.
func TestFaultsOfTheDatabase(t *testing.T) {
	t.Parallel()
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Covers(t, "decision 34.4", "decision 34.5", "decision 36", "spec 7, status 500")
			f := setup(t)
			f.addReadings(t, deviceID, start.Add(-time.Hour), 3)
			f.requireWorking(t)
			end := fault.begin(t, f)
			f.clock.advance(time.Minute) // So that no key is remembered.
			for operation, got := range f.everyOperation(t) {
				require.Equal(t, statuses[fault.code], got.status, "%s: %s", operation, got.body)
				requireReticent(t, got)
				if !strings.HasPrefix(operation, "HEAD ") {
					got.requireError(t, fault.code, "")
				}
			}
			end()
			require.Contains(t, f.log.String(), fault.logged)
			f.requireWorking(t)
		})
	}
}

// Connections that died while nobody used them are replaced; a request that meets one may be told to come again.
func TestDeadConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 34.4")
	f := setup(t)
	for range 3 {
		f.requireWorking(t)
		f.exec(t, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
			AND application_name LIKE 'roomsensor%'`)
		for operation, got := range f.everyOperation(t) {
			if got.status != http.StatusOK {
				require.Equal(t, http.StatusServiceUnavailable, got.status, "%s: %s", operation, got.body)
				requireReticent(t, got)
			}
		}
	}
}

// everyOperation sends every operation of the document once, all at the same time.
func (f *fixture) everyOperation(t *testing.T) map[string]response {
	t.Helper()
	var group sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]response{}
	for _, operation := range openapitest.API().Operations() {
		method, path, _ := strings.Cut(operation, " ")
		path = strings.ReplaceAll(path, "{device_id}", deviceID.String())
		require.NotContains(t, path, "{")
		body, options := "", []option{withKey(f.key)}
		if method == http.MethodPatch {
			body, options = `{"metadata":{}}`, append(options, asJSON)
		}
		group.Go(func() {
			got := f.try(t.Context(), method, "/v1"+path, body, options...)
			mu.Lock()
			defer mu.Unlock()
			answers[operation] = got
		})
	}
	group.Wait()
	for operation, got := range answers {
		require.NoError(t, got.err, operation)
	}
	return answers
}

// requireWorking waits until every operation succeeds.
func (f *fixture) requireWorking(t *testing.T) {
	t.Helper()
	f.forgetRequests(t)
	require.Eventually(t, func() bool {
		for _, got := range f.everyOperation(t) {
			if got.status != http.StatusOK {
				return false
			}
		}
		return true
	}, 30*time.Second, 100*time.Millisecond)
}

// locking keeps everybody else from some tables.
func locking(tables string) func(*testing.T, *fixture) func() {
	return func(t *testing.T, f *fixture) func() {
		t.Helper()
		tx, err := f.sql.Begin(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		_, err = tx.Exec(t.Context(), "LOCK TABLE "+tables+" IN ACCESS EXCLUSIVE MODE")
		require.NoError(t, err)
		return func() { require.NoError(t, tx.Rollback(t.Context())) }
	}
}

// killing ends the connection of every query that waits for a lock.
func killing(t *testing.T, f *fixture) func() {
	t.Helper()
	unlock := locking("teams, devices, assignments, readings")(t, f)
	conn, err := pgx.Connect(t.Context(), f.url)
	require.NoError(t, err)
	done, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-done:
				stopped <- conn.Close(context.Background())
				return
			case <-time.After(10 * time.Millisecond):
				_, _ = conn.Exec(context.Background(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
					WHERE datname = current_database() AND wait_event_type = 'Lock'`) // What it does shows in the log.
			}
		}
	}()
	return func() {
		close(done)
		require.NoError(t, <-stopped)
		unlock()
	}
}

// readOnly is what a standby says that was the primary.
func readOnly(t *testing.T, f *fixture) func() {
	t.Helper()
	set := func(value string) {
		f.exec(t, `SET TRANSACTION READ WRITE; DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = `+value+`', current_database()); END $$`)
		f.exec(t, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database()
			AND application_name LIKE 'roomsensor%'`)
	}
	set("on")
	return func() { set("off") }
}

func renaming(tables ...string) func(*testing.T, *fixture) func() {
	return func(t *testing.T, f *fixture) func() {
		t.Helper()
		for _, table := range tables {
			f.exec(t, "ALTER TABLE "+table+" RENAME TO gone_"+table)
		}
		return func() {
			for _, table := range tables {
				f.exec(t, "ALTER TABLE gone_"+table+" RENAME TO "+table)
			}
		}
	}
}
