package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// check is one of the checks of decision 22 and what it answers.
type check struct {
	name     string
	sentence string // says that it comes before the next
	code     roomsensor.Code
	param    string
}

// attempt is a request.
type attempt struct {
	method, path, body string
	options            []option
}

// requireOrder holds an endpoint to an order of checks: with two failures at once, any two of them, and with all from
// one on, the answer is that of the first. build makes the request in which these fail.
func (f *fixture) requireOrder(t *testing.T, order []check, build func(fails func(name string) bool) attempt) {
	t.Helper()
	require.Equal(t, http.StatusOK, f.attempt(t, build(func(string) bool { return false })).status)
	for i, first := range order {
		conformance.Covers(t, first.sentence)
		sets := [][]check{order[i:]}
		for _, second := range order[i:] {
			sets = append(sets, []check{first, second})
		}
		for _, set := range sets {
			a := build(func(name string) bool {
				return slices.ContainsFunc(set, func(c check) bool { return c.name == name })
			})
			got := f.attempt(t, a)
			got.requireError(t, first.code, first.param)
			if a.method == http.MethodGet {
				a.method = http.MethodHead
				require.Equal(t, got.status, f.attempt(t, a).status)
			}
			f.forgetMost(t)
		}
	}
}

func (f *fixture) attempt(t *testing.T, a attempt) response {
	t.Helper()
	return f.do(t, a.method, a.path, a.body, a.options...)
}

// forgetMost empties the windows of all keys but those that are at their limit.
func (f *fixture) forgetMost(t *testing.T) {
	t.Helper()
	f.exec(t, `DELETE FROM rate_counters WHERE passed - over < 600`)
}

// credentialsFor are keys that fail the checks of keys: by scope, and each at its limit or not.
func (f *fixture) credentialsFor(t *testing.T) func(fails func(string) bool) option {
	t.Helper()
	limited := func(scope roomsensor.Scope) string {
		text := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: scope})
		f.fillWindow(t, text, slices.Repeat([]time.Time{time.Now()}, roomsensor.RateLimit))
		return text
	}
	keys := map[roomsensor.Scope][2]string{
		roomsensor.ScopeRead:      {f.readKey, limited(roomsensor.ScopeRead)},
		roomsensor.ScopeReadWrite: {f.key, limited(roomsensor.ScopeReadWrite)},
	}
	return func(fails func(string) bool) option {
		scope, place := roomsensor.ScopeReadWrite, 0
		if fails("scope") {
			scope = roomsensor.ScopeRead
		}
		if fails("rate") {
			place = 1
		}
		key := keys[scope][place]
		if fails("key") {
			key = wrongSecret(key)
		}
		return withKey(key)
	}
}

// The checks that every operation begins with.
var firstChecks = []check{
	{"route", "decision 22.1", roomsensor.CodeNotFound, ""},
	{"method", "decision 22.1", roomsensor.CodeMethodNotAllowed, ""},
	{"key", "decision 22.2", roomsensor.CodeAPIKeyInvalid, ""},
	{"rate", "decision 22.3", roomsensor.CodeRateLimitExceeded, ""},
}

func TestOrderOfPatchChecks(t *testing.T) {
	t.Parallel()
	f := setup(t)
	full, gone := number(0xde, 2), number(0xde, 3)
	for i, id := range []uuid.UUID{full, gone} {
		f.addDevice(t, teamID, id, "dev:"+string(rune('2'+i)))
	}
	f.exec(t, `UPDATE devices SET metadata = (SELECT jsonb_object_agg('k' || i, 'v') FROM generate_series(1, 50) i) WHERE id = $1`, full)
	asJSON, used := header("Content-Type", "application/json"), header("Idempotency-Key", "used")
	for _, id := range []uuid.UUID{deviceID, full, gone} {
		require.Equal(t, http.StatusOK, f.do(t, http.MethodPatch, "/devices/"+id.String(), `{"metadata":{}}`, asJSON, used).status)
	}
	f.exec(t, `DELETE FROM devices WHERE id = $1`, gone)
	credentials := f.credentialsFor(t)

	order := append(slices.Clone(firstChecks), []check{
		{"scope", "decision 22.4", roomsensor.CodeInsufficientScope, ""},
		{"path id", "decision 22.5", roomsensor.CodeValidationFailed, "device_id"},
		{"header", "decision 22.6", roomsensor.CodeValidationFailed, "Content-Type"},
		{"parameter", "decision 22.6", roomsensor.CodeValidationFailed, "x"},
		{"size", "decision 22.7", roomsensor.CodeRequestTooLarge, ""},
		{"assignment", "decision 22.8", roomsensor.CodeNotImplemented, "assignment"},
		{"body", "decision 22.9", roomsensor.CodeValidationFailed, "unknown"},
		{"idempotency", "decision 22.10", roomsensor.CodeValidationFailed, "Idempotency-Key"},
		{"device", "decision 22.11", roomsensor.CodeDeviceNotFound, "device_id"},
		{"tags", "decision 22.11", roomsensor.CodeValidationFailed, "metadata"},
	}...)
	f.requireOrder(t, order, func(fails func(string) bool) attempt {
		id := deviceID.String()
		switch {
		case fails("path id"):
			id = "dev:1"
		case fails("device") && fails("idempotency"):
			id = gone.String()
		case fails("device"):
			id = number(9, 9).String()
		case fails("tags"):
			id = full.String()
		}
		a := attempt{http.MethodPatch, "/devices/" + id, `"metadata":{"one":"more"}`, []option{credentials(fails)}}
		add := func(name string, change func()) {
			if fails(name) {
				change()
			}
		}
		add("method", func() { a.method = http.MethodPost })
		add("route", func() { a.path += "/none" })
		add("parameter", func() { a.path += "?x=1" })
		add("body", func() { a.body += `,"unknown":1` })
		add("assignment", func() { a.body += `,"assignment":1` })
		add("size", func() { a.body += strings.Repeat(" ", 64<<10) })
		add("idempotency", func() { a.options = append(a.options, used) })
		a.body = "{" + a.body + "}"
		if !fails("header") {
			a.options = append(a.options, asJSON)
		}
		return a
	})
}

// A replay passes what an update would fail at, and is held to what comes before it.
func TestOrderOfAReplay(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 22.2", "decision 22.4", "decision 22.10")
	f := setup(t)
	const body = `{"metadata":{"one":"more"}}`
	used := header("Idempotency-Key", "used")
	first := f.patch(t, body, used)
	require.Equal(t, http.StatusOK, first.status)
	f.exec(t, `UPDATE devices SET metadata = (SELECT jsonb_object_agg('k' || i, 'v') FROM generate_series(1, 50) i)`)
	require.Equal(t, string(first.body), string(f.patch(t, body, used).body), "before the 50 keys")
	f.patch(t, `{"metadata":{"two":"more"}}`, used).requireError(t, roomsensor.CodeValidationFailed, "Idempotency-Key")
	f.exec(t, `DELETE FROM devices`)
	require.Equal(t, string(first.body), string(f.patch(t, body, used).body), "before the device")
	f.patch(t, body, used, withKey(f.readKey)).requireError(t, roomsensor.CodeInsufficientScope, "")
	f.patch(t, body, used, withKey(wrongSecret(f.key))).requireError(t, roomsensor.CodeAPIKeyInvalid, "")
}
