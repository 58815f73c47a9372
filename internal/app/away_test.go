package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// While the database is away every operation that needs it says so, and when
// to try again; once it is back they go on.
func TestDatabaseThatIsAwayIsOverload(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 34.4", "decision 34.5", "decision 36")
	i := install(t)
	o, err := app.OpenOperator(t.Context(), config.Database{DatabaseURL: i.database})
	require.NoError(t, err)
	defer o.Close()
	key, err := o.CreateAPIKey(t.Context(), app.KeyOptions{TeamID: i.team, Scope: roomsensor.ScopeRead})
	require.NoError(t, err)

	database := newLine(t, i.database)
	r := startAPI(t, apiConfig(database.URL))
	r.address("ops")
	base := r.address("api") + "/v1"
	r.awaitReady()
	paths := []string{
		"/team", "/devices", "/devices/current", "/devices/" + i.device.String(), "/devices/" + i.device.String() + "/readings",
		"/readings.csv", "/readings.csv?shape=wide",
	}
	ask := func(path string) (*http.Response, string) {
		return send(t, http.MethodGet, base+path, "Authorization", "Bearer "+key.Key)
	}
	for _, path := range paths {
		response, body := ask(path)
		require.Equal(t, http.StatusOK, response.StatusCode, body)
	}
	database.Cut()
	for _, path := range paths {
		response, body := ask(path)
		require.Equal(t, http.StatusServiceUnavailable, response.StatusCode, body)
		require.Regexp(t, `^[1-9]\d*$`, response.Header.Get("Retry-After"))
		require.Contains(t, body, `"code":"overloaded"`)
		require.Contains(t, body, `"param":null`)
		require.NotRegexp(t, `(?i)postgres|dial|127\.0\.0\.1:\d+"? *connect|sql`, strings.ReplaceAll(body, base, ""))
	}
	database.Mend()
	require.Eventually(t, func() bool {
		response, _ := ask("/devices")
		return response.StatusCode == http.StatusOK
	}, patience, 100*time.Millisecond)
	require.NoError(t, r.end())
}
