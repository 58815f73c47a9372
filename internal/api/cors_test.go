package api_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

var loopback = netip.MustParsePrefix("127.0.0.1/32")

const dashboard = "https://dashboard.example"

var origin = header("Origin", dashboard)

// accessControl returns the headers of a response that only a listed origin gets.
func (r response) accessControl() (names []string) {
	for name := range r.header {
		if strings.HasPrefix(name, "Access-Control-") {
			names = append(names, name)
		}
	}
	return names
}

func TestCORS(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.addReading(t, deviceID, start, 1)
	plain := f.replica
	f.replica = f.serve(t, f.store, func(cfg *api.Config) { cfg.Origins = []string{"http://localhost:3000", dashboard} })
	t.Run("preflight", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 51 a 1")
		for _, path := range append(readEndpoints(), "/nothing") {
			got := f.do(t, http.MethodOptions, path, "", withoutKey, origin, header("Access-Control-Request-Method", "PATCH"))
			require.Equal(t, http.StatusNoContent, got.status, path)
			require.Empty(t, got.body)
			require.Equal(t, dashboard, got.header.Get("Access-Control-Allow-Origin"))
			require.Contains(t, got.header.Get("Access-Control-Allow-Methods"), "PATCH")
			for _, name := range []string{"Authorization", "Content-Type", "Idempotency-Key", "If-None-Match"} {
				require.Contains(t, got.header.Get("Access-Control-Allow-Headers"), name)
			}
			require.Empty(t, got.header.Get("Access-Control-Allow-Credentials"), "cookies are not used")
			require.Empty(t, got.header.Get("RateLimit-Limit"))
			require.NotEmpty(t, got.header.Get("X-Request-Id"))
		}
	})
	t.Run("responses", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 51 a 2", "decision 51 a 4")
		for _, coding := range []string{"identity", "gzip"} {
			for _, path := range append(readEndpoints(), "/nothing", "/team?x=1", "/devices/"+unknownID, "/devices?limit=0") {
				got := f.get(t, path, origin, header("Accept-Encoding", coding))
				require.Equal(t, dashboard, got.header.Get("Access-Control-Allow-Origin"), path)
				require.Contains(t, got.header.Values("Vary"), "Origin", path)
				for _, name := range []string{"ETag", "RateLimit-Remaining", "Retry-After", "X-Request-Id", "X-Row-Count"} {
					require.Contains(t, got.header.Get("Access-Control-Expose-Headers"), name)
				}
				require.Equal(t, plain.get(t, path, f.key).status, got.status, path)
			}
		}
		f.get(t, "/team", withoutKey, origin).requireError(t, roomsensor.CodeAPIKeyMissing, "")
		require.Equal(t, dashboard, f.get(t, "/team", withoutKey, origin).header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, dashboard, f.patch(t, `{}`, origin).header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, dashboard, f.do(t, http.MethodDelete, "/team", "", origin).header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, http.StatusMethodNotAllowed, f.do(t, http.MethodOptions, "/team", "", origin).status, "not a preflight")
		unchanged := f.get(t, devicePath, origin, header("If-None-Match", "*"))
		require.Equal(t, http.StatusNotModified, unchanged.status)
		require.Equal(t, dashboard, unchanged.header.Get("Access-Control-Allow-Origin"))
	})
	t.Run("other origins", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 51 a 3", "decision 51 a 4")
		for _, other := range []string{
			"https://evil.example", "https://dashboard.example.evil.example", "https://dashboard.exampl", "http://dashboard.example",
			"https://dashboard.example:8443", "https://Dashboard.example", "null", "*", "", dashboard + "," + dashboard,
		} {
			preflight := f.do(t, http.MethodOptions, "/team", "", header("Origin", other), header("Access-Control-Request-Method", "GET"))
			preflight.requireError(t, roomsensor.CodeMethodNotAllowed, "")
			require.Equal(t, "GET, HEAD", preflight.header.Get("Allow"))
			got := f.get(t, "/devices", header("Origin", other)).requireOK(t)
			require.Empty(t, append(preflight.accessControl(), got.accessControl()...), other)
			require.ElementsMatch(t, []string{"Origin", "Accept-Encoding"}, got.header.Values("Vary"))
			require.Equal(t, []string{"Origin"}, preflight.header.Values("Vary"))
		}
		require.Equal(t, []string{"Origin"}, f.get(t, "/team").header.Values("Vary"), "without an origin")
		twice := f.get(t, "/team", origin, origin)
		require.Empty(t, twice.accessControl())
		require.Empty(t, f.replica.do(t, http.MethodGet, "/docs", "", origin).accessControl(), "only the API")
	})
	t.Run("without origins", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 51 a 3")
		got := plain.do(t, http.MethodOptions, "/v1/team", "", origin, header("Access-Control-Request-Method", "GET"))
		got.requireError(t, roomsensor.CodeMethodNotAllowed, "")
		require.Empty(t, got.accessControl())
		got = plain.do(t, http.MethodGet, "/v1/team", "", withKey(f.key), origin)
		require.Empty(t, got.accessControl())
		require.Empty(t, got.header.Values("Vary"))
	})
}
