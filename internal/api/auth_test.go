package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// wrongSecret is a key whose last character is another one.
func wrongSecret(key string) string {
	last := "a"
	if strings.HasSuffix(key, last) {
		last = "b"
	}
	return key[:len(key)-1] + last
}

// Spec 5, rule 6; decision 24.
func TestAuthorizationHeader(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 24.4", "decision 24.5", "decision 24.6", "decision 24.8")
	f := setup(t)
	id, secret, ok := roomsensor.ParseKey(roomsensor.APIKey, f.key)
	require.True(t, ok)
	for name, tc := range map[string]struct {
		headers  []string
		want     roomsensor.Code
		contract string
	}{
		"right":                {[]string{"Bearer " + f.key}, "", "spec 5, rule 1"},
		"scheme in lower case": {[]string{"bearer " + f.key}, "", ""},
		"scheme in upper case": {[]string{"BEARER " + f.key}, "", ""},
		"two spaces":           {[]string{"Bearer  " + f.key}, "", ""},
		"no header":            {nil, roomsensor.CodeAPIKeyMissing, "spec 5, rule 6, missing"},
		"empty":                {[]string{""}, roomsensor.CodeAPIKeyInvalid, "spec 5, rule 6, malformed"},
		"scheme alone":         {[]string{"Bearer"}, roomsensor.CodeAPIKeyInvalid, "spec 5, rule 6, malformed"},
		"no scheme":            {[]string{f.key}, roomsensor.CodeAPIKeyInvalid, "spec 5, rule 6, malformed"},
		"another scheme":       {[]string{"Basic " + f.key}, roomsensor.CodeAPIKeyInvalid, "spec 5, rule 7"},
		"sent twice":           {[]string{"Bearer " + f.key, "Bearer " + f.key}, roomsensor.CodeAPIKeyInvalid, "spec 5, rule 6, malformed"},
		"two keys":             {[]string{"Bearer " + f.key + ", " + f.key}, roomsensor.CodeAPIKeyInvalid, "spec 5, rule 6, malformed"},
		"wrong secret":         {[]string{"Bearer " + wrongSecret(f.key)}, roomsensor.CodeAPIKeyInvalid, "spec 5, rule 6, wrong secret"},
		"no secret":            {[]string{"Bearer rsk_" + id + "_"}, roomsensor.CodeAPIKeyInvalid, "spec 5, rule 6, malformed"},
		"no id":                {[]string{"Bearer rsk__" + secret}, roomsensor.CodeAPIKeyInvalid, "spec 5, rule 6, malformed"},
		"unknown id":           {[]string{"Bearer rsk_nobody_" + secret}, roomsensor.CodeAPIKeyInvalid, "spec 5, rule 6, unknown"},
		"an upload credential": {[]string{"Bearer rsi_" + id + "_" + secret}, roomsensor.CodeAPIKeyInvalid, "spec 5, rule 6, unknown"},
		"not UTF-8":            {[]string{"Bearer rsk_\xff_" + secret}, roomsensor.CodeAPIKeyInvalid, ""},
		"a very long id":       {[]string{"Bearer rsk_" + strings.Repeat("x", 30_000) + "_x"}, roomsensor.CodeAPIKeyInvalid, ""},
		"something behind it":  {[]string{"Bearer " + f.key + " x"}, roomsensor.CodeAPIKeyInvalid, "spec 5, rule 6, malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.contract != "" {
				conformance.Covers(t, tc.contract)
			}
			got := f.get(t, "/team", withoutKey, func(r *http.Request) {
				r.Header["Authorization"] = tc.headers
			})
			if tc.want == "" {
				require.Equal(t, http.StatusOK, got.status, string(got.body))
				return
			}
			got.requireError(t, tc.want, "")
			require.Equal(t, "Bearer", got.header.Get("WWW-Authenticate"))
			require.Empty(t, got.header.Get("RateLimit-Limit"), "it counts nowhere")
		})
	}
}

// Revoke and expiry are told only to who knows the secret.
func TestRevokedAndExpiredKeys(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 24.7", "decision 24.12")
	conformance.Covers(t, "spec 5, rule 6, revoked", "spec 5, rule 6, expired")
	f := setup(t)
	expires := start.Add(time.Hour)
	expiring := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead, ExpiresAt: &expires})
	require.Equal(t, http.StatusOK, f.get(t, "/team", withKey(expiring)).status)
	f.clock.advance(time.Hour - time.Nanosecond)
	require.Equal(t, http.StatusOK, f.get(t, "/team", withKey(expiring)).status)
	f.clock.advance(time.Nanosecond)
	f.get(t, "/team", withKey(expiring)).requireError(t, roomsensor.CodeAPIKeyExpired, "")
	f.get(t, "/team", withKey(wrongSecret(expiring))).requireError(t, roomsensor.CodeAPIKeyInvalid, "")

	revoked := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead})
	require.Equal(t, http.StatusOK, f.get(t, "/team", withKey(revoked)).status)
	id, _, _ := roomsensor.ParseKey(roomsensor.APIKey, revoked)
	_, err := f.store.RevokeAPIKey(t.Context(), id)
	require.NoError(t, err)
	f.clock.advance(5 * time.Second)
	f.get(t, "/team", withKey(revoked)).requireError(t, roomsensor.CodeAPIKeyRevoked, "")
	f.get(t, "/team", withKey(wrongSecret(revoked))).requireError(t, roomsensor.CodeAPIKeyInvalid, "")
}

// Spec 5, rule 5; decision 24.
func TestKeyInURL(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 24.6", "decision 24.9", "decision 24.10")
	conformance.Covers(t, "spec 4, GET /readings.csv, key", "spec 5, rule 5")
	f := setup(t)
	key := url.QueryEscape(f.readKey)
	authorized := withKey(f.key)
	for name, tc := range map[string]struct {
		path    string
		options option
		want    roomsensor.Code
		param   string
	}{
		"on the CSV endpoint":           {"/readings.csv?key=" + key, withoutKey, "", ""},
		"percent-encoded":               {"/readings.csv?k%65y=%72" + key[1:], withoutKey, "", ""},
		"a header wins":                 {"/readings.csv?key=wrong", authorized, "", ""},
		"also one that is wrong":        {"/readings.csv?key=" + key, withKey("wrong"), roomsensor.CodeAPIKeyInvalid, ""},
		"wrong":                         {"/readings.csv?key=wrong", withoutKey, roomsensor.CodeAPIKeyInvalid, ""},
		"empty":                         {"/readings.csv?key=", withoutKey, roomsensor.CodeAPIKeyInvalid, ""},
		"without a value":               {"/readings.csv?key", withoutKey, roomsensor.CodeAPIKeyInvalid, ""},
		"twice":                         {"/readings.csv?key=" + key + "&key=" + key, withoutKey, roomsensor.CodeAPIKeyInvalid, ""},
		"malformed":                     {"/readings.csv?key=%zz", withoutKey, roomsensor.CodeAPIKeyInvalid, ""},
		"missing":                       {"/readings.csv?shape=long", withoutKey, roomsensor.CodeAPIKeyMissing, ""},
		"with a semicolon":              {"/readings.csv?key=" + key + ";a=b", withoutKey, roomsensor.CodeAPIKeyInvalid, ""},
		"beside what does not decode":   {"/readings.csv?from=%zz&key=" + key, withoutKey, roomsensor.CodeValidationFailed, ""},
		"no credential elsewhere":       {"/team?key=" + key, withoutKey, roomsensor.CodeAPIKeyMissing, ""},
		"no parameter elsewhere":        {"/team?key=" + key, authorized, roomsensor.CodeValidationFailed, "key"},
		"twice beside a header":         {"/readings.csv?key=a&key=b", authorized, roomsensor.CodeValidationFailed, "key"},
		"a mistyped name":               {"/readings.csv?Key=" + key, withoutKey, roomsensor.CodeAPIKeyMissing, ""},
		"a mistyped name with a header": {"/readings.csv?keys=" + key, authorized, roomsensor.CodeValidationFailed, "keys"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := f.get(t, tc.path, tc.options)
			if tc.want == "" {
				require.Equal(t, http.StatusOK, got.status, string(got.body))
			} else {
				got.requireError(t, tc.want, tc.param)
			}
			require.NotContains(t, string(got.body), f.readKey)
		})
	}
}

// Spec 5, rule 4.
func TestReadKeyMayNotChange(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, PATCH, scope", "spec 5, rule 4", "spec 7, code insufficient_scope")
	f := setup(t)
	got := f.patch(t, `{"display_name":"New"}`, withKey(f.readKey))
	got.requireError(t, roomsensor.CodeInsufficientScope, "")
	require.Equal(t, "600", got.header.Get("RateLimit-Limit"), "it is authenticated")
	require.NotContains(t, string(f.get(t, "/devices/"+deviceID.String()).body), "New")
}

func TestTeam(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, GET /team", "spec 2, team, id", "spec 2, team, name", "spec 2, api_key, key_id",
		"spec 2, api_key, scopes", "spec 5, rule 3")
	f := setup(t)
	type body struct {
		Team struct {
			ID   uuid.UUID `json:"id"`
			Name string    `json:"name"`
		} `json:"team"`
		APIKey struct {
			KeyID  string   `json:"key_id"`
			Scopes []string `json:"scopes"`
		} `json:"api_key"`
	}
	for key, scope := range map[string]string{f.key: "read_write", f.readKey: "read"} {
		got := f.get(t, "/team", withKey(key))
		team := decode[body](t, got)
		require.Equal(t, teamID, team.Team.ID)
		require.Equal(t, "Team <&>", team.Team.Name)
		require.Contains(t, string(got.body), "Team <&>", "not escaped for HTML")
		require.Equal(t, []string{scope}, team.APIKey.Scopes)
		id, _, _ := roomsensor.ParseKey(roomsensor.APIKey, key)
		require.Equal(t, id, team.APIKey.KeyID)
	}
}
