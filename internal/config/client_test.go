package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
)

func TestClient(t *testing.T) {
	t.Parallel()
	_, key, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	_, ingest, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	validate := func(url, key string) error {
		return (&config.Client{RoomsensorURL: url, RoomsensorAPIKey: config.Secret(key)}).Validate()
	}
	for _, url := range []string{"https://sensors.example.com", "http://127.0.0.1:8080/v1", "https://example.com/air/v1/"} {
		require.NoError(t, validate(url, key))
	}
	for _, url := range []string{"", "sensors.example.com", "ftp://x", "https://x?key=1", "https://user@x"} {
		requireValueError(t, validate(url, key), "roomsensor-url")
	}
	for wrong, want := range map[string]string{
		"": "is missing", "x": "is not a complete API key", key[:len(key)-1]: "is not a complete API key", ingest: "is an ingest key",
	} {
		require.ErrorContains(t, validate("https://sensors.example.com", wrong), "--roomsensor-api-key (ROOMSENSOR_API_KEY) "+want)
	}
}
