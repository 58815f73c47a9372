package config_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
)

func TestTracingURL(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"": "", "http://collector:4318": "http://collector:4318/v1/traces", "https://c.example/otlp/": "https://c.example/otlp/v1/traces",
	} {
		cfg := config.Tracing{OTLPEndpoint: endpoint, Sampler: "always_on", SamplerArg: "1"}
		require.NoError(t, cfg.Validate(), endpoint)
		require.Equal(t, want, cfg.TracesURL())
	}
	for _, endpoint := range []string{"collector:4318", "grpc://collector:4317", "http://u:secret@collector:4318", "http://c/v1/traces"} {
		cfg := config.Tracing{OTLPEndpoint: endpoint, Sampler: "always_on", SamplerArg: "1"}
		requireValueError(t, cfg.Validate(), "otel-exporter-otlp-endpoint")
	}
}

func TestTracingSampler(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		sampler, arg string
		ratio        float64
		trust        bool
	}{
		{"always_on", "0.5", 1, false},
		{"always_off", "1", 0, false},
		{"traceidratio", "0.01", 0.01, false},
		{"parentbased_always_on", "1", 1, true},
		{"parentbased_traceidratio", "0", 0, true},
	} {
		cfg := config.Tracing{Sampler: test.sampler, SamplerArg: test.arg}
		require.NoError(t, cfg.Validate())
		ratio, trust := cfg.Ratio()
		require.InDelta(t, test.ratio, ratio, 0)
		require.Equal(t, test.trust, trust)
	}
	for _, arg := range []string{"", "-0.1", "1.1", "1%", "NaN"} {
		requireValueError(t, (&config.Tracing{Sampler: "traceidratio", SamplerArg: arg}).Validate(), "otel-traces-sampler-arg")
	}
}

// The values of headers may be secret, and appear nowhere.
func TestOTLPHeaders(t *testing.T) {
	t.Parallel()
	cfg := config.Defaults[config.Tracing]()
	cfg.OTLPEndpoint = "http://collector:4318"
	require.NoError(t, cfg.OTLPHeaders.UnmarshalText([]byte("X-Scope=team, Authorization=Bearer%20secret%3D")))
	require.Equal(t, map[string]string{"X-Scope": "team", "Authorization": "Bearer secret="}, cfg.OTLPHeaders.ByName)
	var log bytes.Buffer
	logger := zerolog.New(&log)
	logger.Info().Object("config", &config.API{Tracing: cfg}).Msg("")
	require.Contains(t, log.String(), `"otel_exporter_otlp_headers":"Authorization,X-Scope"`)
	text, err := cfg.OTLPHeaders.MarshalText()
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprintf("%s%s%v%#v", log.String(), text, cfg, cfg), "secret")
	for _, text := range []string{"Authorization", "a b=c", "a=%zz", "a=%0a", "=x", "a=b,"} {
		require.Error(t, new(config.OTLPHeaders).UnmarshalText([]byte(text)), text)
	}
}
