package clientcmd

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
)

// TestProbeRedirect checks that a probe sends nothing to another host.
func TestProbeRedirect(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(other.Close)
	site := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusPermanentRedirect))
	t.Cleanup(site.Close)
	_, apiKey, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	_, ingestKey, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	cfg := config.Defaults[config.Probe]()
	cfg.RoomsensorURL, cfg.IngestURL = site.URL, site.URL
	cfg.RoomsensorAPIKey, cfg.IngestKey = config.Secret(apiKey), config.Secret(ingestKey)
	_, err := check(t.Context(), &cfg, "1")
	require.ErrorContains(t, err, "308")
	require.Zero(t, requests.Load())
}
