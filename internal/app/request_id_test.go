package app_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/dbtest"
	"roomsensor/internal/openapitest"
)

// Every listener of every process, health checks among them; what the client sends is never taken.
func TestRequestIDOnEveryListener(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 8.1", "decision 8.2", "decision 8.3")
	i := install(t)
	api, ingest := startAPI(t, apiConfig(i.database)), startIngest(t, i.config())
	apiOps, public := api.address("ops"), api.address("api")
	ingestOps, receiver := ingest.address("ops"), ingest.address("receiver")
	silent := startAPI(t, apiConfig(dbtest.Empty(t).URL)) // Never ready: no migrations.
	silentOps := silent.address("ops")
	api.awaitReady()
	ingest.awaitReady()

	seen := map[string]bool{}
	for url, status := range map[string]int{
		apiOps + "/livez": 200, apiOps + "/readyz": 200, apiOps + "/metrics": 200, apiOps + "/none": 404,
		ingestOps + "/livez": 200, ingestOps + "/readyz": 200, silentOps + "/livez": 200, silentOps + "/readyz": 503,
		public + "/v1/team": 401, public + "/v1/none": 404, public + "/docs": 200, public + "/": 302, public + "/docs/none": 404,
		receiver + "/uploads": 405, receiver + "/none": 404,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		for _, name := range []string{"X-Request-Id", "X-Request-ID", "Request-Id", "X-Correlation-Id", "Traceparent"} {
			request.Header[name] = []string{"req_aaaaaaaaaaaaaaaaaaaaaaaaaa"}
		}
		response, err := openapitest.Transport(&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, status, response.StatusCode, url)
		ids := response.Header.Values("X-Request-Id")
		require.Len(t, ids, 1, url)
		require.Regexp(t, `^req_[a-z2-7]{26}$`, ids[0])
		require.NotContains(t, ids[0], "aaaaaaaa", url)
		require.False(t, seen[ids[0]], url)
		seen[ids[0]] = true
	}
	require.NoError(t, api.end())
	require.NoError(t, ingest.end())
	require.NoError(t, silent.end())
}
