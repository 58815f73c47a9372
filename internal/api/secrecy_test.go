package api_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/canary"
	"roomsensor/internal/config"
	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// failing is the real backend, of which an export fails before its first byte.
type failing struct {
	api.Backend
	err error
}

func (f *failing) OpenExport(context.Context, uuid.UUID, roomsensor.ExportQuery) (api.Export, error) {
	return nil, f.err
}

// Every status that the path can have, on a URL that holds a key.
func TestEveryAnswerOfTheExportIsKeptByNobody(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 25.7", "decision 26.2")
	f := setup(t)
	expires := start.Add(-time.Hour)
	expired := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead, ExpiresAt: &expires})
	limited := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead})
	f.fillWindow(t, limited, slices.Repeat([]time.Time{time.Now()}, roomsensor.RateLimit))
	down := f.serve(t, &failing{backend{f.store}, errDatabaseLost}, nil)
	away := f.serve(t, &failing{backend{f.store}, roomsensor.CodeOverloaded.New()}, nil)
	f.addReading(t, deviceID, start.Add(-time.Hour), 1)
	f.exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(2, 1001) i`, teamID)

	const path = "/v1/readings.csv"
	key := "?key=" + f.readKey
	for name, tc := range map[string]struct {
		status       int
		on           *replica
		method, path string
	}{
		"long":               {200, f.replica, "GET", path + key},
		"head":               {200, f.replica, "HEAD", path + key},
		"parameter":          {400, f.replica, "GET", path + key + "&shape=tall"},
		"malformed query":    {400, f.replica, "GET", path + key + "&from=%zz"},
		"no key":             {401, f.replica, "GET", path},
		"expired":            {401, f.replica, "GET", path + "?key=" + expired},
		"unknown device":     {404, f.replica, "GET", path + key + "&devices=" + number(9, 9).String()},
		"unknown assignment": {404, f.replica, "HEAD", path + key + "&assignment_id=" + number(9, 9).String()},
		"below":              {404, f.replica, "GET", path + "/x" + key},
		"method":             {405, f.replica, "POST", path + key},
		"options":            {405, f.replica, "OPTIONS", path + key},
		"too large":          {413, f.replica, "GET", path + key + "&shape=wide"},
		"rate":               {429, f.replica, "GET", path + "?key=" + limited},
		"failure":            {500, down, "GET", path + key},
		"overload":           {503, away, "GET", path + key},
		"encoded":            {200, f.replica, "GET", "/v1/%72eadings%2ecsv" + key},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tc.on.do(t, tc.method, tc.path, "")
			require.Equal(t, tc.status, got.status, string(got.body))
			require.Equal(t, []string{"no-store"}, got.header.Values("Cache-Control"))
			require.Equal(t, []string{"no-referrer"}, got.header.Values("Referrer-Policy"))
			authenticated := tc.status != 401 && tc.status != 405 && name != "below"
			require.Equal(t, authenticated, got.header.Get("RateLimit-Limit") != "")
		})
	}
}

// A key that stands where the name of a filter should, beside a cursor.
func TestKeyAsAFilterIsNotRepeated(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 26.1")
	f := setup(t)
	f.addDevice(t, teamID, number(0xde, 2), "dev:2")
	cursor := *decode[list[struct{}]](t, f.get(t, "/devices?limit=1")).NextCursor
	_, secret, _ := roomsensor.ParseKey(roomsensor.APIKey, f.key)
	for _, query := range []string{
		"cursor=" + cursor + "&metadata." + f.key + "=x", "metadata." + f.key + "=%ff", "metadata." + f.key + "=1&metadata." + f.key + "=2",
		f.key, "x" + f.key + "=" + f.key, "limit=" + f.key,
	} {
		got := f.do(t, http.MethodGet, "/devices?"+query, "")
		require.Equal(t, http.StatusBadRequest, got.status, query)
		require.NotContains(t, string(got.body), secret)
		require.NotContains(t, strings.ToLower(f.log.String()), secret)
	}
}

// The names of a body's fields are in its errors, unless they are keys.
func TestKeyAsAFieldIsNotRepeated(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 19.2", "decision 19.3")
	f := setup(t)
	_, upload, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	for _, key := range []string{f.key, strings.ToUpper(f.key), upload} {
		for body, param := range map[string]string{
			`{"KEY":1}`: "", `{"a KEY b":1}`: "a ", `{"metadata":{"KEY":1}}`: "metadata.", `{"metadata":{"KEY":"x","KEY":"x"}}`: "metadata.",
		} {
			got := f.patch(t, strings.ReplaceAll(body, "KEY", key))
			got.requireError(t, roomsensor.CodeValidationFailed, param+key[:len("rsk_")]+"...")
			require.Empty(t, canary.Keys(got.text()))
		}
	}
	f.patch(t, `{"metadata":{"rsx_1":1}}`).requireError(t, roomsensor.CodeValidationFailed, "metadata.rsx_1")
}

// A panic may carry anything that its request did. What it says is for the log,
// which is masked on its way out.
func TestPanicOfARequestShowsNoSecret(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 26.1", "decision 36", "spec 5, rule 5, secret")
	f := setup(t)
	log := &lockedBuffer{}
	r := f.serve(t, backend{f.store}, func(cfg *api.Config) {
		cfg.Log = zerolog.New(config.MaskingWriter(log)).Level(zerolog.DebugLevel)
	}, func(s *http.Server) {
		s.Handler.(*echo.Echo).GET("/panics", func(c echo.Context) error { panic(fmt.Sprint(c.Request().URL, c.Request().Header)) })
	})
	got := r.try(t.Context(), http.MethodGet, "/panics?key="+f.readKey+"&last=1h", "", withKey(f.key))
	require.NoError(t, got.err)
	got.requireError(t, roomsensor.CodeInternalError, "")
	requireReticent(t, got)
	require.Empty(t, canary.Keys(got.text()))
	require.Empty(t, canary.Keys([]byte(log.String())))
	require.Contains(t, log.String(), "_xxxxx&last=1h", "it is the panic that was masked")
	require.Contains(t, log.String(), "goroutine")
}
