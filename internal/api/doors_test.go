package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

func TestEveryEndpointNeedsAKey(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, authentication", "spec 5, rule 1")
	f := setup(t)
	for _, path := range everyGet() {
		require.Equal(t, http.StatusOK, f.get(t, path, withKey(f.readKey)).status, path)
		f.get(t, path, withoutKey).requireError(t, roomsensor.CodeAPIKeyMissing, "")
		f.get(t, path, withoutKey, header("X-Api-Key", f.key), header("Cookie", "key="+f.key)).
			requireError(t, roomsensor.CodeAPIKeyMissing, "")
	}
	f.patch(t, `{"display_name":"Never"}`, withoutKey).requireError(t, roomsensor.CodeAPIKeyMissing, "")
	require.NotContains(t, string(f.get(t, "/devices").body), "Never")
}

func TestScopes(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for key, contract := range map[string]string{f.readKey: "spec 5, rule 3, read", f.key: "spec 5, rule 3, read_write"} {
		t.Run(contract, func(t *testing.T) {
			t.Parallel()
			conformance.Covers(t, contract)
			for _, path := range everyGet() {
				require.Equal(t, http.StatusOK, f.get(t, path, withKey(key)).status, path)
			}
			changed := f.patch(t, `{"metadata":{}}`, withKey(key))
			if key == f.key {
				require.Equal(t, http.StatusOK, changed.status)
			} else {
				changed.requireError(t, roomsensor.CodeInsufficientScope, "")
			}
		})
	}
}

// What the specification says that there is not.
func TestNoOtherDoors(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for contract, paths := range map[string][]string{
		"spec 5, rule 7": {"/oauth", "/oauth/token", "/oauth/authorize", "/token", "/login", "/../.well-known/oauth-authorization-server"},
		"spec 5, rule 8": {"/keys", "/api_keys", "/api-keys", "/team/keys", "/team/api_key", "/team/api_key/rotate"},
		"spec 6, none": {
			"/events", "/webhooks", "/notifications", "/subscriptions", "/stream", "/ws",
			"/devices/" + deviceID.String() + "/events", "/devices/" + deviceID.String() + "/readings/stream",
		},
	} {
		t.Run(contract, func(t *testing.T) {
			t.Parallel()
			conformance.Covers(t, contract)
			for _, path := range paths {
				for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
					f.do(t, method, path, `{}`).requireError(t, roomsensor.CodeNotFound, "")
				}
			}
			f.get(t, "/team", withoutKey, header("Authorization", "Basic "+f.key)).requireError(t, roomsensor.CodeAPIKeyInvalid, "")
			events := f.get(t, "/devices/current", header("Accept", "text/event-stream"))
			require.Equal(t, "application/json; charset=utf-8", events.header.Get("Content-Type"))
		})
	}
}

func TestNoRandomPageAccess(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 8, paging, no random access")
	f := setup(t)
	for _, path := range []string{"/devices", "/devices/current", readingsPath, "/devices/" + deviceID.String() + "/assignments"} {
		for _, param := range []string{"page", "offset", "skip", "start", "after", "before"} {
			f.get(t, path+"?"+param+"=2").requireError(t, roomsensor.CodeValidationFailed, param)
		}
	}
}

// The window of a key is one for all endpoints, also where it is spent.
func TestDenialOnEveryEndpoint(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 8, rate, endpoints", "spec 8, rate, Retry-After")
	f := setup(t)
	f.spend(t, 600, time.Millisecond)
	denied := []response{f.patch(t, `{}`, withKey(f.readKey)), f.get(t, "/devices/dev:1", withKey(f.readKey))}
	for _, path := range everyGet() {
		denied = append(denied, f.get(t, path, withKey(f.readKey)))
	}
	for _, got := range denied {
		got.requireError(t, roomsensor.CodeRateLimitExceeded, "")
		require.Regexp(t, `^(600|59\d|5[678]\d)$`, got.header.Get("Retry-After"))
	}
}
