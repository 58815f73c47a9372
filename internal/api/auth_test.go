package api_test

import (
	"context"
	"encoding/base32"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/config"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
	"roomsensor/test/proctest"
	"roomsensor/test/secretscan"
)

func TestAuthorizationHeader(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 24 d", "decision 24 e", "decision 24 f", "decision 24 h")
	f := setup(t)
	id, secret, ok := roomsensor.ParseKey(roomsensor.APIKey, f.key)
	require.True(t, ok)
	const missing, malformed, unknown = "spec 5, rule 6, missing", "spec 5, rule 6, malformed", "spec 5, rule 6, unknown"
	for name, tc := range map[string]struct {
		headers []string
		want    roomsensor.Code
		covers  string
	}{
		"right":                {[]string{"Bearer " + f.key}, "", "spec 5, rule 1"},
		"lower case scheme":    {[]string{"bearer " + f.key}, "", ""},
		"upper case scheme":    {[]string{"BEARER " + f.key}, "", ""},
		"two spaces":           {[]string{"Bearer  " + f.key}, "", ""},
		"no header":            {nil, roomsensor.CodeAPIKeyMissing, missing},
		"empty":                {[]string{""}, roomsensor.CodeAPIKeyInvalid, malformed},
		"only the scheme":      {[]string{"Bearer"}, roomsensor.CodeAPIKeyInvalid, malformed},
		"no scheme":            {[]string{f.key}, roomsensor.CodeAPIKeyInvalid, malformed},
		"another scheme":       {[]string{"Basic " + f.key}, roomsensor.CodeAPIKeyInvalid, "spec 5, rule 7"},
		"sent twice":           {[]string{"Bearer " + f.key, "Bearer " + f.key}, roomsensor.CodeAPIKeyInvalid, malformed},
		"two keys":             {[]string{"Bearer " + f.key + ", " + f.key}, roomsensor.CodeAPIKeyInvalid, malformed},
		"wrong secret":         {[]string{"Bearer " + wrongSecret(f.key)}, roomsensor.CodeAPIKeyInvalid, "spec 5, rule 6, wrong_secret"},
		"no secret":            {[]string{"Bearer rsk_" + id + "_"}, roomsensor.CodeAPIKeyInvalid, malformed},
		"no id":                {[]string{"Bearer rsk__" + secret}, roomsensor.CodeAPIKeyInvalid, malformed},
		"no prefix":            {[]string{"Bearer " + id + "_" + secret}, roomsensor.CodeAPIKeyInvalid, malformed},
		"upper case prefix":    {[]string{"Bearer RSK_" + id + "_" + secret}, roomsensor.CodeAPIKeyInvalid, unknown},
		"unknown id":           {[]string{"Bearer " + formatKey("nobody", secret)}, roomsensor.CodeAPIKeyInvalid, unknown},
		"an upload credential": {[]string{"Bearer rsi_" + id + "_" + secret}, roomsensor.CodeAPIKeyInvalid, unknown},
		"not UTF-8":            {[]string{"Bearer rsk_\xff_" + secret}, roomsensor.CodeAPIKeyInvalid, ""},
		"a very long id":       {[]string{"Bearer " + formatKey(strings.Repeat("x", 30_000), "x")}, roomsensor.CodeAPIKeyInvalid, ""},
		"trailing text":        {[]string{"Bearer " + f.key + " x"}, roomsensor.CodeAPIKeyInvalid, malformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.covers != "" {
				conformance.Covers(t, tc.covers)
			}
			got := f.get(t, "/team", setHeader("Authorization", tc.headers...))
			if tc.want == "" {
				got.requireOK(t)
				return
			}
			got.requireError(t, tc.want, "")
			require.Equal(t, "Bearer", got.header.Get("WWW-Authenticate"))
			require.Empty(t, got.header.Get("RateLimit-Limit"), "the request is not counted")
		})
	}
}

func TestEveryEndpointNeedsAKey(t *testing.T) {
	t.Parallel()
	f := setup(t)
	t.Run("without a key", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "spec 4, authentication", "spec 5, rule 1")
		for _, path := range readEndpoints() {
			f.get(t, path, withoutKey).requireError(t, roomsensor.CodeAPIKeyMissing, "")
			f.get(t, path, withoutKey, header("X-Api-Key", f.key), header("Cookie", "key="+f.key)).
				requireError(t, roomsensor.CodeAPIKeyMissing, "")
		}
		f.patch(t, `{"display_name":"Never"}`, withoutKey).requireError(t, roomsensor.CodeAPIKeyMissing, "")
	})
	for key, sentence := range map[string]string{f.readKey: "spec 5, rule 3, read", f.key: "spec 5, rule 3, read_write"} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			conformance.Covers(t, sentence)
			for _, path := range readEndpoints() {
				f.get(t, path, withKey(key)).requireOK(t)
			}
			if key == f.key {
				f.patch(t, `{"metadata":{}}`).requireOK(t)
				return
			}
			conformance.Covers(t, "spec 4, patch, scope", "spec 5, rule 4", "spec 7, insufficient_scope")
			got := f.patch(t, `{"display_name":"Never"}`, withKey(key))
			got.requireError(t, roomsensor.CodeInsufficientScope, "")
			require.Equal(t, "600", got.header.Get("RateLimit-Limit"), "the request is authenticated")
		})
	}
	t.Cleanup(func() { require.Equal(t, 0, f.count(t, `SELECT count(*) FROM devices WHERE display_name = 'Never'`)) })
}

// count returns the result of a query for one number.
func (f *fixture) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, f.sql.QueryRow(context.WithoutCancel(t.Context()), sql, args...).Scan(&n))
	return n
}

// Revocation and expiry apply on every replica, though each replica has just used the key and remembers it. They are
// reported only to a client that knows the secret; of both, revocation is reported.
func TestRevokedAndExpiredKeys(t *testing.T) {
	t.Parallel()
	f := setup(t)
	replicas := []*replica{f.replica, f.serve(t, f.store, nil)}
	requireCode := func(t *testing.T, key string, code roomsensor.Code) {
		t.Helper()
		for _, r := range replicas {
			if code == "" {
				r.get(t, "/team", key).requireOK(t)
				continue
			}
			r.get(t, "/team", key).requireError(t, code, "")
			r.do(t, http.MethodGet, "/v1/readings.csv?key="+key, "").requireError(t, code, "")
			r.get(t, "/team", wrongSecret(key)).requireError(t, roomsensor.CodeAPIKeyInvalid, "")
			r.do(t, http.MethodGet, "/v1/readings.csv?key="+wrongSecret(key), "").requireError(t, roomsensor.CodeAPIKeyInvalid, "")
		}
	}

	conformance.Covers(t, "decision 24 g", "decision 24 l", "spec 5, rule 6, expired")
	expires := start.Add(time.Hour)
	key := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead, ExpiresAt: &expires})
	f.clock.advance(time.Hour - time.Nanosecond)
	requireCode(t, key, "")
	f.clock.advance(time.Nanosecond)
	requireCode(t, key, roomsensor.CodeAPIKeyExpired)
	f.revoke(t, key)
	f.clock.advance(5 * time.Second)
	requireCode(t, key, roomsensor.CodeAPIKeyRevoked)

	conformance.Covers(t, "decision 24 k", "spec 5, rule 6, revoked")
	key = f.newKey(t, roomsensor.ScopeRead)
	requireCode(t, key, "")
	f.revoke(t, key)
	f.clock.advance(5 * time.Second)
	requireCode(t, key, roomsensor.CodeAPIKeyRevoked)
}

// TestKeyUse checks that a request is a use of its key if it has the right secret.
func TestKeyUse(t *testing.T) {
	t.Parallel()
	f := setup(t)
	uses := httpedge.NewKeyUses(f.store.RecordAPIKeyUses, f.clock.now, zerolog.Nop())
	r := f.serve(t, f.store, func(cfg *api.Config) { cfg.KeyUses = uses })
	r.get(t, "/team", f.key).requireOK(t)
	r.get(t, "/team", wrongSecret(f.readKey)).requireError(t, roomsensor.CodeAPIKeyInvalid, "")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	uses.Run(stopped)
	keys, err := f.store.APIKeys(t.Context(), teamID)
	require.NoError(t, err)
	require.Len(t, keys, 2)
	for i := range keys {
		if strings.Contains(f.key, keys[i].ID) {
			require.Equal(t, &roomsensor.KeyUse{KeyID: keys[i].ID, At: start, Client: "Go-http-client/1.1"}, keys[i].LastUse)
		} else {
			require.Nil(t, keys[i].LastUse)
		}
	}
}

func TestKeyFormat(t *testing.T) {
	t.Parallel()
	f := setup(t)
	t.Run("public id and secret", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 24 a", "decision 24 b", "decision 24 c")
		f.patch(t, `{"metadata":{}}`, idempotencyKey("k")).requireOK(t)
		secrets := map[string]bool{}
		for _, key := range []string{f.key, f.readKey} {
			parts := strings.Split(key, "_")
			require.Len(t, parts, 3)
			require.Equal(t, "rsk", parts[0])
			require.Contains(t, string(f.get(t, "/team", withKey(key)).body), `"key_id":"`+parts[1]+`"`)
			random := parts[2][:len(parts[2])-len("sumsum")]
			raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(random))
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(raw)*8, 256)
			require.False(t, secrets[parts[2]])
			secrets[parts[2]] = true
			require.NotContains(t, f.keyTables(t), parts[2])
		}
	})
	t.Run("stored as SHA-256 of the text", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 24 c")
		for _, random := range []string{"x", "AbC-9", "with_underscores_", "sécret"} {
			id := uuid.NewString()
			key := formatKey(id, random)
			secret := strings.TrimPrefix(key, "rsk_"+id+"_")
			f.exec(t, `INSERT INTO api_keys (key_id, team_id, secret_sha256) VALUES ($1, $2, sha256(convert_to($3, 'UTF8')))`, id, teamID, secret)
			f.get(t, "/team", withKey(key)).requireOK(t)
			f.get(t, "/team", withKey(formatKey(id, random+"x"))).requireError(t, roomsensor.CodeAPIKeyInvalid, "")
		}
	})
}

// keyTables returns the contents of all tables that mention keys, as text.
func (f *fixture) keyTables(t *testing.T) (text string) {
	t.Helper()
	require.NoError(t, f.sql.QueryRow(t.Context(), `SELECT string_agg(line, E'\n') FROM (SELECT k::text AS line FROM api_keys k UNION ALL
		SELECT i::text || convert_from(response, 'UTF8') FROM idempotency_keys i UNION ALL
		SELECT r::text FROM rate_windows r UNION ALL SELECT c::text FROM rate_counters c)`).Scan(&text))
	require.Contains(t, text, keyID(f.key))
	return text
}

func TestKeyInURL(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 24 d", "decision 24 e", "decision 24 f", "decision 24 i", "decision 24 j")
	conformance.Covers(t, "spec 4, readings.csv, key", "spec 5, rule 5, csv_only")
	f := setup(t)
	key := url.QueryEscape(f.readKey)
	const invalid, missing = roomsensor.CodeAPIKeyInvalid, roomsensor.CodeAPIKeyMissing
	for name, tc := range map[string]struct {
		path   string
		option option
		want   roomsensor.Code
		param  string
	}{
		"on the CSV endpoint":           {"/readings.csv?key=" + key, withoutKey, "", ""},
		"percent-encoded":               {"/readings.csv?k%65y=%72" + key[1:], withoutKey, "", ""},
		"header takes precedence":       {"/readings.csv?key=wrong", withKey(f.key), "", ""},
		"wrong header too":              {"/readings.csv?key=" + key, withKey("wrong"), invalid, ""},
		"empty header too":              {"/readings.csv?key=" + key, setHeader("Authorization", ""), invalid, ""},
		"wrong":                         {"/readings.csv?key=wrong", withoutKey, invalid, ""},
		"empty":                         {"/readings.csv?key=", withoutKey, invalid, ""},
		"without a value":               {"/readings.csv?key", withoutKey, invalid, ""},
		"twice":                         {"/readings.csv?key=" + key + "&key=" + key, withoutKey, invalid, ""},
		"malformed":                     {"/readings.csv?key=%zz", withoutKey, invalid, ""},
		"missing":                       {"/readings.csv?shape=long", withoutKey, missing, ""},
		"with a semicolon":              {"/readings.csv?key=" + key + ";a=b", withoutKey, invalid, ""},
		"beside a malformed parameter":  {"/readings.csv?from=%zz&key=" + key, withoutKey, roomsensor.CodeValidationFailed, ""},
		"twice beside a header":         {"/readings.csv?key=a&key=b", withKey(f.key), roomsensor.CodeValidationFailed, "key"},
		"a mistyped name":               {"/readings.csv?Key=" + key, withoutKey, missing, ""},
		"a mistyped name with a header": {"/readings.csv?keys=" + key, withKey(f.key), roomsensor.CodeValidationFailed, "keys"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := f.get(t, tc.path, tc.option)
			if tc.want == "" {
				got.requireOK(t)
			} else {
				got.requireError(t, tc.want, tc.param)
			}
		})
	}
	f.head(t, "/readings.csv?key="+key, withoutKey).requireOK(t)
	conformance.Covers(t, "A0.2") // The other exports take the key as well, by the same code.
	f.get(t, "/readings.parquet?key="+key, withoutKey).requireOK(t)
	f.get(t, "/readings.parquet?key=wrong", withoutKey).requireError(t, invalid, "")
	for _, path := range []string{"/team", "/devices", "/devices/current", devicePath, assignmentsPath, readingsPath} {
		f.get(t, path+"?key="+key, withoutKey).requireError(t, missing, "")
		head := f.head(t, path+"?key="+key, withoutKey)
		require.Equal(t, http.StatusUnauthorized, head.status)
		require.Equal(t, []string{"Bearer"}, head.header.Values("WWW-Authenticate"))
		f.get(t, path+"?key="+key).requireInvalid(t, "key")
	}
	f.do(t, http.MethodPatch, devicePath+"?key="+f.key, `{"metadata":{}}`, withoutKey, asJSON).requireError(t, missing, "")
}

func formatKey(id, random string) string { return roomsensor.FormatKey(roomsensor.APIKey, id, random) }

// setupCounting is setup with a replica whose SQL statements are counted.
func setupCounting(t *testing.T) (f *fixture, statements func(send func() response) (int64, response)) {
	t.Helper()
	database := dbtest.New(t)
	f = setupOn(t, database)
	var executed atomic.Int64
	url := dbtest.Tap(t, database.URL, func(message dbtest.Message) bool {
		// The pool checks an idle connection with a simple query.
		if message.IsStatement() && !strings.HasPrefix(string(message.Body), "-- ping") {
			executed.Add(1)
		}
		return true
	})
	f.replica = f.serve(t, openStore(t, url), nil)
	return f, func(send func() response) (int64, response) {
		before := executed.Load()
		got := send()
		return executed.Load() - before, got
	}
}

func TestStatementsOfRefusedRequests(t *testing.T) {
	t.Parallel()
	f, statements := setupCounting(t)
	revoked, expired := f.revokedKey(t), f.expiredKey(t)
	get := func(key string) func() response { return func() response { return f.get(t, "/devices", withKey(key)) } }

	conformance.Covers(t, "decision 24 f", "decision 24 g")
	// The number of statements does not reveal whether an id exists, whether or not the key was used before.
	for _, want := range []int64{1, 0, 0} { // A refusal is remembered.
		f.get(t, "/devices").requireOK(t) // Its key is cached from here on.
		for name, tc := range map[string]struct {
			key  string
			code roomsensor.Code
		}{
			"unknown id":                {formatKey("nobody", "secret"), roomsensor.CodeAPIKeyInvalid},
			"wrong secret":              {wrongSecret(f.key), roomsensor.CodeAPIKeyInvalid},
			"wrong secret, unused":      {wrongSecret(f.readKey), roomsensor.CodeAPIKeyInvalid},
			"revoked":                   {revoked, roomsensor.CodeAPIKeyRevoked},
			"revoked, and wrong secret": {wrongSecret(revoked), roomsensor.CodeAPIKeyInvalid},
			"expired":                   {expired, roomsensor.CodeAPIKeyExpired},
			"expired, and wrong secret": {wrongSecret(expired), roomsensor.CodeAPIKeyInvalid},
		} {
			n, got := statements(get(tc.key))
			got.requireError(t, tc.code, "")
			require.Equal(t, want, n, name)
		}
	}
	n, _ := statements(get(f.key))
	require.LessOrEqual(t, n, int64(2), "a cached key is not looked up")

	conformance.Covers(t, "decision 22 a 4", "decision 19 h 1", "decision 19 h 2", "spec 5, rule 4")
	// A change without the scope, or of the reserved field, is refused before the device is read.
	const admission = 2 // Look up the key, count the request.
	patch := func(key, body string) func() response {
		return func() response { return f.patch(t, body, withKey(key), idempotencyKey("k")) }
	}
	f.clock.advance(time.Minute) // Forgets cached keys.
	n, got := statements(patch(f.readKey, `{"metadata":{}}`))
	got.requireError(t, roomsensor.CodeInsufficientScope, "")
	require.EqualValues(t, admission, n)
	n, got = statements(patch(f.key, `{"assignment":null}`))
	got.requireError(t, roomsensor.CodeNotImplemented, "assignment")
	require.EqualValues(t, admission, n)
	n, got = statements(patch(f.key, `{"metadata":{}}`))
	got.requireOK(t)
	require.Greater(t, n, int64(admission))

	// A request of a key at its rate limit costs no statement, once the key is known to be there.
	limited := f.limitedKey(t, roomsensor.ScopeRead)
	n, got = statements(get(limited))
	got.requireError(t, roomsensor.CodeRateLimitExceeded, "")
	require.EqualValues(t, admission, n)
	for range 20 {
		n, got = statements(get(limited))
		got.requireError(t, roomsensor.CodeRateLimitExceeded, "")
		require.Zero(t, n)
	}
}

// A key that a client sends is in no log, metric or response, also of a panic (decision 26). Every response of these
// tests and every log of a replica is searched; test/e2e sends keys in all parts of requests.
func TestKeyNeverShown(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 26 a", "spec 5, rule 5, secret", "decision 36")
	f := setup(t)
	registry := prometheus.NewRegistry()
	log := &proctest.Output{}
	f.replica = f.serve(t, f.store, func(cfg *api.Config) {
		cfg.Metrics = registry
		cfg.Log = zerolog.New(config.MaskingWriter(log)).Level(zerolog.DebugLevel)
	}, func(s *http.Server) {
		api.Router(s).GET("/panics", func(c echo.Context) error { panic(fmt.Sprint(c.Request().URL, c.Request().Header)) })
	})
	inURL := "key=" + f.key
	for _, path := range []string{
		"/readings.parquet?" + inURL + "&last=x", "/readings.csv?" + inURL, "/readings.csv?" + inURL + "&from=%zz", "/readings.csv?" + f.key, "/team?" + inURL,
		"/devices?metadata." + f.key + "=%ff", "/" + f.key, "/devices/" + f.key, "/devices?cursor=" + f.key,
	} {
		for _, auth := range []option{withKey(f.key), withKey(f.key + "x"), withoutKey, header("Authorization", f.key)} {
			require.Less(t, f.get(t, path, auth).status, 500, path)
		}
	}
	_, upload, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	conformance.Covers(t, "decision 19 c", "decision 19 d")
	for _, key := range []string{f.key, strings.ToUpper(f.key), upload} {
		for body, param := range map[string]string{
			`{"KEY":1}`: "", `{"a KEY b":1}`: "a ", `{"metadata":{"KEY":1}}`: "metadata.", `{"metadata":{"KEY":"x","KEY":"x"}}`: "metadata.",
		} {
			f.patch(t, strings.ReplaceAll(body, "KEY", key)).requireInvalid(t, param+key[:len("rsk_")]+"...")
		}
	}
	f.patch(t, `{"metadata":{"rsx_1":1}}`).requireInvalid(t, "metadata.rsx_1")

	f.replica.do(t, http.MethodGet, "/panics?"+inURL+"&last=1h", "", withKey(f.key)).requireError(t, roomsensor.CodeInternalError, "")
	require.Contains(t, log.String(), "goroutine")
	require.Contains(t, log.String(), "_xxxxx&last=1h", "the panic is logged, with its key masked")
	families, err := registry.Gather()
	require.NoError(t, err)
	_, secret, ok := roomsensor.ParseKey(roomsensor.APIKey, f.key)
	require.True(t, ok)
	shown := fmt.Sprint(families, log)
	require.NotContains(t, strings.ToLower(shown), secret)
	require.Empty(t, secretscan.Keys([]byte(shown)))
}
