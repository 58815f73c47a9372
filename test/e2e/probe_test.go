package e2e_test

import (
	"crypto/tls"
	"encoding/json"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/proctest"
	"roomsensor/test/tlstest"
)

// TestProbe checks a whole service from outside, once and repeatedly. A check succeeds while an upload becomes readable, and
// otherwise says what is wrong. It takes some seconds, because a check waits for what does not come.
func TestProbe(t *testing.T) {
	t.Parallel()
	e := newStreamEnv(t)
	e.newDevice("dev:1")
	other := e.newTeam(t)
	api := e.start("api")
	worker := e.start("ingest", "--no-receiver")
	e.receiver = e.start("ingest", "--no-worker")
	e.settings["ROOMSENSOR_URL"], e.settings["ROOMSENSOR_API_KEY"] = api.url, e.key
	e.settings["INGEST_URL"], e.settings["INGEST_KEY"] = e.receiver.url, e.ingestKey

	once := func(code int, message string, args ...string) (result map[string]any) {
		t.Helper()
		r := e.run(nil, append([]string{"probe", "--once"}, args...)...)
		require.Equal(t, code, r.code, r.stderr)
		require.Contains(t, r.stderr, message)
		require.NoError(t, json.Unmarshal([]byte(r.out), &result))
		require.Equal(t, code == 0, result["ok"])
		return result
	}
	require.Nil(t, once(1, "must have one device", "--roomsensor-api-key", other.key)["accepted_seconds"])
	for range 2 {
		result := once(0, "")
		for _, step := range []string{"read_seconds", "accepted_seconds", "visible_seconds"} {
			require.Greater(t, result[step], 0.0, step)
		}
		require.Nil(t, result["certificate_expires_at"])
	}
	require.LessOrEqual(t, value[int](e.env, "SELECT count(*) FROM readings"), 2, "a reading for each bucket")

	repeated := e.start("probe", "--interval", "1s", "--timeout", "3s")
	success := func(want float64) {
		t.Helper()
		require.Eventually(t, func() bool {
			metrics, err := proctest.Metrics(t.Context(), repeated.ops)
			return err == nil && metrics["roomsensor_probe_success"].GetMetric()[0].GetGauge().GetValue() == want
		}, patience, pollEvery)
	}
	success(1)
	e.stop(worker)
	success(0)
	result := once(1, "was accepted, but its reading was not readable within 10s. Check that the workers run", "--timeout", "10s")
	require.NotNil(t, result["accepted_seconds"])
	require.Nil(t, result["visible_seconds"])
	e.restart(worker)
	success(1)
	e.stop(repeated)
	once(0, "")

	once(1, "was rejected: unknown_unit: ", "--timeout", "10s", "--ingest-key", other.ingestKey)
	_, unknown, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	once(1, "ingest_key_invalid: ", "--ingest-key", unknown)
	_, unknown, _ = roomsensor.GenerateKey(roomsensor.APIKey)
	once(1, "api_key_invalid: ", "--roomsensor-api-key", unknown)
	once(1, "connection refused", "--ingest-url", "http://127.0.0.1:1")

	certificates := tlstest.New(t, "localhost")
	e.settings["SSL_CERT_FILE"] = certificates.CA
	e.settings["ROOMSENSOR_URL"] = secure(t, certificates, api.url)
	result = once(1, "A certificate expires on ")
	expires, err := time.Parse(time.RFC3339, result["certificate_expires_at"].(string))
	require.NoError(t, err)
	require.Less(t, time.Until(expires), 2*time.Hour)
	delete(e.settings, "SSL_CERT_FILE")
	once(1, "certificate signed by unknown authority")
}

// secure returns the URL of a proxy with TLS in front of a server.
func secure(t *testing.T, certificates tlstest.Certificates, server string) string {
	t.Helper()
	target, err := url.Parse(server)
	require.NoError(t, err)
	pair, err := tls.LoadX509KeyPair(certificates.Server, certificates.Key)
	require.NoError(t, err)
	proxy := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(target))
	proxy.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	proxy.StartTLS()
	t.Cleanup(proxy.Close)
	return strings.Replace(proxy.URL, "127.0.0.1", "localhost", 1)
}
