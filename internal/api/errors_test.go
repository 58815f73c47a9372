package api_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
	"roomsensor/test/openapitest"
	"roomsensor/test/secretscan"
)

// statuses are the codes of the contract and their statuses.
var statuses = map[roomsensor.Code]int{
	"api_key_missing": 401, "api_key_invalid": 401, "api_key_revoked": 401, "api_key_expired": 401,
	"insufficient_scope": 403, "rate_limit_exceeded": 429, "validation_failed": 400, "time_range_invalid": 400,
	"time_range_too_wide": 400, "cursor_invalid": 400, "cursor_team_mismatch": 400, "cursor_device_mismatch": 400,
	"device_not_found": 404, "assignment_not_found": 404, "csv_too_large": 413, "request_too_large": 413,
	"not_implemented": 501, "not_found": 404, "method_not_allowed": 405, "overloaded": 503, "internal_error": 500,
}

// specCodes are the codes that the specification names itself (part 7).
var specCodes = []roomsensor.Code{
	"insufficient_scope", "rate_limit_exceeded", "cursor_invalid", "cursor_team_mismatch", "cursor_device_mismatch",
	"device_not_found", "assignment_not_found", "validation_failed",
}

// requireNoInternals requires that a response reveals nothing of the implementation (decision 36).
func requireNoInternals(t *testing.T, got response) {
	t.Helper()
	text := strings.ReplaceAll(string(got.text()), docsURL, "")
	require.Empty(t, secretscan.Internals(text), text)
	require.Empty(t, got.header.Get("Server"))
}

// Every code of the API can occur, with its status and envelope (decisions 34 and 35).
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 8 b 1", "decision 34 a", "decision 34 b", "decision 34 e", "decision 34 f")
	conformance.Covers(t, "spec 7, status_400", "spec 7, status_401", "spec 7, status_403", "spec 7, status_404",
		"spec 7, status_413", "spec 7, status_429", "spec 7, status_500", "spec 7, status_501", "spec 9, rule 2")
	conformance.Covers(t, "spec 7, type", "spec 7, code", "spec 7, message", "spec 7, param",
		"spec 7, doc_url", "spec 7, request_id", "spec 4, errors")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-time.Hour), 3)
	f.addDevices(t, 1000)
	other := testID(0xde, 2)
	f.addDevice(t, teamID, other, "dev:2000")
	cursor := f.firstCursor(t, readingsPath+"?limit=1")
	unavailable := f.serveFailing(t, func(context.Context) error { return context.DeadlineExceeded })
	type example struct {
		got   response
		param string // empty is null
	}
	examples := map[roomsensor.Code]example{
		roomsensor.CodeAPIKeyMissing:        {f.get(t, "/team", withoutKey), ""},
		roomsensor.CodeAPIKeyInvalid:        {f.get(t, "/team", withKey(formatKey("nobody", "x"))), ""},
		roomsensor.CodeAPIKeyRevoked:        {f.get(t, "/team", withKey(f.revokedKey(t))), ""},
		roomsensor.CodeAPIKeyExpired:        {f.get(t, "/team", withKey(f.expiredKey(t))), ""},
		roomsensor.CodeInsufficientScope:    {f.patch(t, `{}`, withKey(f.readKey)), ""},
		roomsensor.CodeRateLimitExceeded:    {f.get(t, "/team", withKey(f.limitedKey(t, roomsensor.ScopeRead))), ""},
		roomsensor.CodeValidationFailed:     {f.get(t, "/devices?limit=0"), "limit"},
		roomsensor.CodeTimeRangeInvalid:     {f.get(t, readingsPath+"?from=x"), "from"},
		roomsensor.CodeTimeRangeTooWide:     {f.get(t, readingsPath+"?last=91d"), "last"},
		roomsensor.CodeCursorInvalid:        {f.get(t, readingsPath+"?cursor=x"), "cursor"},
		roomsensor.CodeCursorTeamMismatch:   {f.get(t, readingsPath+"?cursor="+cursor, withKey(f.readKey)), "cursor"},
		roomsensor.CodeCursorDeviceMismatch: {f.get(t, "/devices/"+other.String()+"/readings?cursor="+cursor), "cursor"},
		roomsensor.CodeDeviceNotFound:       {f.get(t, "/devices/"+unknownID), "device_id"},
		roomsensor.CodeAssignmentNotFound:   {f.get(t, readingsPath+"?assignment_id="+unknownID), "assignment_id"},
		roomsensor.CodeCSVTooLarge:          {f.get(t, "/readings.csv?shape=wide"), ""},
		roomsensor.CodeRequestTooLarge:      {f.patch(t, strings.Repeat(" ", 64<<10+1)), ""},
		roomsensor.CodeNotImplemented:       {f.patch(t, `{"assignment":1}`), "assignment"},
		roomsensor.CodeNotFound:             {f.get(t, "/nothing"), ""},
		roomsensor.CodeMethodNotAllowed:     {f.do(t, http.MethodPut, "/team", ""), ""},
		roomsensor.CodeOverloaded:           {unavailable.get(t, "/team", f.key), ""},
		roomsensor.CodeInternalError:        {f.serveFailing(t, databaseLost).get(t, "/team", f.key), ""},
	}
	for _, info := range roomsensor.Codes {
		require.True(t, strings.HasPrefix(string(info.Code), "ingest_") || examples[info.Code].got.status != 0, info.Code)
	}
	for code, tc := range examples {
		if slices.Contains(specCodes, code) {
			conformance.Covers(t, "spec 7, "+string(code))
		}
		require.Equal(t, statuses[code], tc.got.status)
		tc.got.requireError(t, code, tc.param)
		require.Equal(t, "application/json; charset=utf-8", tc.got.header.Get("Content-Type"))
		wait := tc.got.status == http.StatusServiceUnavailable || tc.got.status == http.StatusTooManyRequests
		require.Equal(t, wait, tc.got.header.Get("Retry-After") != "", code)
		requireGolden(t, "error_"+string(code)+".json.golden", tc.got.body)
		requireNoInternals(t, tc.got)
	}
}

// No response reveals SQL, a stack trace, a host name or the text of a library (decision 36).
func TestErrorLeak(t *testing.T) {
	t.Parallel()
	f := setup(t)
	t.Run("malformed requests", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 36", "decision 34 a", "decision 34 e")
		for _, path := range []string{
			"/devices/'%20OR%201=1--", "/devices/%00", "/devices/" + strings.Repeat("z", 36), readingsPath + "?from=0000-00-00T00:00:00Z",
			readingsPath + "?last=99999999999999999999d", readingsPath + "?last=1e3d", readingsPath + "?cursor=%ff",
			readingsPath + "?cursor=AAAA", readingsPath + "?limit=99999999999999999999", "/devices?limit=0x10",
			"/devices?metadata.%00=x&limit=0", "/readings.csv?devices=%27;DROP", "/readings.csv?shape=%00", "/readings.csv?assignment_id={}",
			"/devices?%zz", "/devices?a;b", "/%ff", "/devices/..%2f..%2fetc", "/docs/..%2f..%2fgo.mod", "/docs/none",
		} {
			got := f.get(t, path)
			require.GreaterOrEqual(t, got.status, 400, path)
			require.Less(t, got.status, 500, path)
			requireNoInternals(t, got)
		}
		for _, body := range []string{
			"", "{", "null", "{}", `{"display_name":}`, `{"display_name":1e999}`, "{\"display_name\":\"\xff\"}", `{"display_name":"\ud800"}`,
			`{"display_name":["x"]}`, `{"metadata":{"a":{"b":"c"}}}`, `{"a":1,"a":2}`, `{"display_name":"x"} {}`,
			strings.Repeat("[", 20_000), `{"metadata":` + strings.Repeat(`{"a":`, 11_000), `{"metadata":{"` + strings.Repeat("k", 65) + `":"v"}}`,
		} {
			got := f.patch(t, body)
			require.Equal(t, http.StatusBadRequest, got.status, body)
			requireNoInternals(t, got)
		}
		for name, value := range map[string]string{
			"Authorization": "Bearer rsk_\xff_", "Content-Type": "application/json; charset=\x80", "Idempotency-Key": "\xff",
			"Content-Encoding": "gzip",
		} {
			got := f.patch(t, `{}`, setHeader(name, value))
			require.GreaterOrEqual(t, got.status, 400, name)
			requireNoInternals(t, got)
		}
	})
	const text = "SELECT secret FROM table at 10.1.2.3"
	for name, tc := range map[string]struct {
		code roomsensor.Code
		fail func(context.Context) error
	}{
		"unknown error": {roomsensor.CodeInternalError, func(context.Context) error { return errors.New(text) }},
		"panic":         {roomsensor.CodeInternalError, func(context.Context) error { panic(text) }},
		"runtime panic": {roomsensor.CodeInternalError, func(context.Context) error { return any(text).(error) }},
		"deadline": {roomsensor.CodeOverloaded, func(context.Context) error {
			return fmt.Errorf("dial tcp: lookup database.internal: %w", context.DeadlineExceeded)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Covers(t, "decision 36")
			r := f.serveFailing(t, tc.fail)
			got := r.get(t, "/team", f.key)
			got.requireError(t, tc.code, "")
			requireNoInternals(t, got)
			require.NotContains(t, string(got.text()), "internal:")
			require.Equal(t, "600", got.header.Get("RateLimit-Limit"))
			if tc.code == roomsensor.CodeInternalError {
				require.Contains(t, r.log.String(), `"level":"error"`)
			}
			require.Equal(t, strings.HasSuffix(name, "panic"), strings.Contains(r.log.String(), "goroutine"), "a panic is logged with its stack")
			r.get(t, "/devices", f.key).requireOK(t)
		})
	}
}

// A request that the end of the process interrupts gets a response.
func TestShutdownAnswersInterruptedRequests(t *testing.T) {
	t.Parallel()
	f := setup(t)
	work, end := context.WithCancel(t.Context())
	wait := func(ctx context.Context) error { end(); <-ctx.Done(); return ctx.Err() }
	f.replica = f.serve(t, &failingTeam{f.store, wait}, nil, func(s *http.Server) {
		s.BaseContext = func(net.Listener) context.Context { return work }
	})
	f.get(t, "/team").requireError(t, roomsensor.CodeOverloaded, "")
}

// fault is something that a database does to every operation.
type fault struct {
	code   roomsensor.Code
	begin  func(t *testing.T, f *fixture) (end func())
	logged string // the SQLSTATE
}

var faults = map[string]fault{
	"tables are locked":       {roomsensor.CodeOverloaded, locking("teams, devices, assignments, readings"), "55P03"},
	"keys are locked":         {roomsensor.CodeOverloaded, locking("api_keys"), "55P03"},
	"rate limits are locked":  {roomsensor.CodeOverloaded, locking("rate_windows"), "55P03"},
	"queries are terminated":  {roomsensor.CodeOverloaded, terminating, "57P01"},
	"the server is read-only": {roomsensor.CodeOverloaded, readOnly, "25006"},
	"tables are missing":      {roomsensor.CodeInternalError, renaming("teams", "devices", "device_details", "assignments", "readings"), "42P01"},
	"keys are missing":        {roomsensor.CodeInternalError, renaming("api_keys"), "42P01"},
	"rate limits are missing": {roomsensor.CodeInternalError, renaming("rate_windows"), "42P01"},
	"counters are missing":    {roomsensor.CodeInternalError, renaming("rate_counters"), "42P01"},
}

// Whatever the database does, every operation returns a documented error without internals, and works again as soon as
// the database does.
func TestDatabaseFaults(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 34 d", "decision 34 e", "decision 36", "spec 7, status_500")
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.addReadings(t, deviceID, start.Add(-time.Hour), 3)
			f.requireWorking(t)
			end := fault.begin(t, f)
			f.clock.advance(time.Minute) // Forgets cached keys.
			for operation, got := range f.everyOperation(t) {
				require.Equal(t, statuses[fault.code], got.status, "%s: %s", operation, got.body)
				requireNoInternals(t, got)
				if !strings.HasPrefix(operation, "HEAD ") {
					got.requireError(t, fault.code, "")
				}
			}
			end()
			require.Contains(t, f.log.String(), fault.logged, "the log has the cause")
			f.requireWorking(t)
		})
	}
	t.Run("idempotency keys are missing", func(t *testing.T) {
		t.Parallel()
		f := setup(t)
		end := renaming("idempotency_keys")(t, f)
		defer end()
		got := f.patch(t, `{"metadata":{}}`, idempotencyKey("k"))
		got.requireError(t, roomsensor.CodeInternalError, "")
		requireNoInternals(t, got)
	})
	t.Run("idle connections are closed", func(t *testing.T) { // They are replaced; a request may have to be sent again.
		t.Parallel()
		f := setup(t)
		f.requireWorking(t)
		for range 2 {
			f.terminateConnections(t)
			for operation, got := range f.everyOperation(t) {
				if got.status != http.StatusOK {
					require.Equal(t, http.StatusServiceUnavailable, got.status, "%s: %s", operation, got.body)
					requireNoInternals(t, got)
				}
			}
			f.requireWorking(t)
		}
	})
}

func (f *fixture) terminateConnections(t *testing.T) {
	t.Helper()
	f.exec(t, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database()
		AND application_name LIKE 'roomsensor%'`)
}

// everyOperation sends every operation of the OpenAPI document once, all at the same time.
func (f *fixture) everyOperation(t *testing.T) map[string]response {
	t.Helper()
	var group sync.WaitGroup
	var mu sync.Mutex
	got := map[string]response{}
	for _, operation := range openapitest.API().Operations() {
		method, path, _ := strings.Cut(operation, " ")
		path = strings.ReplaceAll(path, "{device_id}", deviceID.String())
		require.NotContains(t, path, "{")
		if path == changesPath { // A client that has caught up needs only the watermark, which may be a second old.
			path += "?since=" + before(time.Hour)
		}
		if strings.Contains(path, "/aggregates") {
			path += "?interval=1h"
		}
		body, options := "", []option{withKey(f.key)}
		if method == http.MethodHead { // A key may run four exports at the same time.
			options = []option{withKey(f.readKey)}
		}
		if method == http.MethodPatch {
			body, options = `{"metadata":{}}`, append(options, asJSON)
		}
		group.Go(func() {
			r := f.try(t.Context(), method, "/v1"+path, body, options...)
			mu.Lock()
			defer mu.Unlock()
			got[operation] = r
		})
	}
	group.Wait()
	for operation, r := range got {
		require.NoError(t, r.err, operation)
	}
	return got
}

// requireWorking waits until every operation succeeds.
func (f *fixture) requireWorking(t *testing.T) {
	t.Helper()
	f.resetRateLimits(t)
	require.Eventually(t, func() bool {
		for _, got := range f.everyOperation(t) {
			if got.status != http.StatusOK {
				return false
			}
		}
		return true
	}, patience, 100*time.Millisecond)
}

// locking locks tables against all other connections.
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

// terminating terminates the connection of every query that waits for a lock.
func terminating(t *testing.T, f *fixture) func() {
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
					WHERE datname = current_database() AND wait_event_type = 'Lock'`) // The log shows its effect.
			}
		}
	}()
	return func() {
		close(done)
		require.NoError(t, <-stopped)
		unlock()
	}
}

// readOnly makes the database behave as a standby.
func readOnly(t *testing.T, f *fixture) func() {
	t.Helper()
	set := func(value string) {
		f.exec(t, `SET TRANSACTION READ WRITE; DO $$ BEGIN
			EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = `+value+`', current_database()); END $$`)
		f.terminateConnections(t)
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
