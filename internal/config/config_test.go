package config_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
)

func validAPI() config.API {
	cfg := config.Defaults[config.API]()
	cfg.DatabaseURL = "postgres://user:secret@db:5432/roomsensor"
	return cfg
}

func validIngest() config.Ingest {
	cfg := config.Defaults[config.Ingest]()
	cfg.DatabaseURL, cfg.NATSURL = "postgres://user:secret@db:5432/roomsensor", "nats://user:secret@queue:4222"
	return cfg
}

// requireValueError checks that an error names the flag and the variable.
func requireValueError(t *testing.T, err error, flag string) {
	t.Helper()
	var invalid *config.ValueError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, flag, invalid.Flag)
	require.True(t, strings.HasPrefix(err.Error(), "--"+flag+" ("+config.Variable(flag)+") "), err.Error())
	require.NotContains(t, err.Error(), "secret")
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	api, ingest, layout := validAPI(), validIngest(), config.Defaults[config.Layout]()
	require.NoError(t, api.Validate())
	require.NoError(t, ingest.Validate())
	require.NoError(t, layout.Validate())
	require.Equal(t, config.Duration(400*day), api.AuditKeep)
	require.Equal(t, 8*config.GiB, ingest.StreamMaxBytes)
	require.Equal(t, config.Duration(7*day), ingest.StreamKeep)
	require.Equal(t, config.Duration(30*day), ingest.RejectsKeep)
	require.Equal(t, config.GiB, ingest.RejectsMaxBytes)
	require.Equal(t, 128*config.MiB, ingest.TeamMaxBytes())
	require.Equal(t, 50, ingest.ParkAfter)
	require.Equal(t, config.Duration(14*day), ingest.MaintainAfter)
	require.Equal(t, "never", ingest.MaintainWindow.String())
	require.Equal(t, config.Duration(10*time.Minute), ingest.MaintainTimeout)
	require.Equal(t, config.Layout{ColumnstoreAfter: config.Age(30 * day)}, layout)
}

func TestAPIValidate(t *testing.T) {
	t.Parallel()
	for flag, breakConfig := range map[string]func(*config.API){
		"database-url": func(c *config.API) { c.DatabaseURL = "" },
		"log-level":    func(c *config.API) { c.LogLevel = "loud" },

		"read-database-url": func(c *config.API) { c.ReadDatabaseURL = "standby:5432" },

		"api-addr":   func(c *config.API) { c.APIAddr = "8080" },
		"ops-addr":   func(c *config.API) { c.OpsAddr = "localhost:ops" },
		"public-url": func(c *config.API) { c.PublicURL = "sensors.example.com" },
		"docs-url":   func(c *config.API) { c.DocsURL = "ftp://docs.example.com" },
		"audit-keep": func(c *config.API) { c.AuditKeep = config.Duration(29 * day) },

		"current-memory": func(c *config.API) { c.CurrentMemory = 31 * config.MiB },

		"otel-exporter-otlp-endpoint":    func(c *config.API) { c.OTLPEndpoint = "collector:4318" },
		"otel-exporter-otlp-certificate": func(c *config.API) { c.OTLPCertificate = "/missing.pem" },
		"otel-traces-sampler":            func(c *config.API) { c.Sampler = "jaeger_remote" },
		"otel-traces-sampler-arg":        func(c *config.API) { c.SamplerArg = "NaN" },
	} {
		cfg := validAPI()
		breakConfig(&cfg)
		requireValueError(t, cfg.Validate(), flag)
	}
}

func TestIngestValidate(t *testing.T) {
	t.Parallel()
	for flag, breakConfig := range map[string]func(*config.Ingest){
		"database-url":               func(c *config.Ingest) { c.DatabaseURL = "db" },
		"nats-url":                   func(c *config.Ingest) { c.NATSURL = "" },
		"docs-url":                   func(c *config.Ingest) { c.DocsURL = "docs" },
		"log-level":                  func(c *config.Ingest) { c.LogLevel = "" },
		"ingest-addr":                func(c *config.Ingest) { c.IngestAddr = "127.0.0.1:99999" },
		"ops-addr":                   func(c *config.Ingest) { c.OpsAddr = "" },
		"stream-replicas":            func(c *config.Ingest) { c.StreamReplicas = 2 },
		"stream-max-bytes":           func(c *config.Ingest) { c.StreamMaxBytes = 15 * config.MiB },
		"stream-keep":                func(c *config.Ingest) { c.StreamKeep = config.Duration(time.Second) },
		"upload-memory":              func(c *config.Ingest) { c.UploadMemory = 63 * config.MiB },
		"upload-requests-per-second": func(c *config.Ingest) { c.UploadRequestsPerSecond = 0 },
		"rejects-keep":               func(c *config.Ingest) { c.RejectsKeep = c.StreamKeep }, // Not longer than that of the stream.
		"rejects-max-bytes":          func(c *config.Ingest) { c.RejectsMaxBytes = 0 },
		"rejects-team-max-bytes":     func(c *config.Ingest) { c.RejectsTeamMaxBytes = 2 * config.GiB }, // More than all teams.
		"park-after":                 func(c *config.Ingest) { c.ParkAfter = 0 },
		"maintain-after":             func(c *config.Ingest) { c.MaintainAfter = config.Duration(12 * time.Hour) },
		"maintain-timeout":           func(c *config.Ingest) { c.MaintainTimeout = config.Duration(9 * time.Second) },
		"no-worker":                  func(c *config.Ingest) { c.NoReceiver, c.NoWorker = true, true },
	} {
		cfg := validIngest()
		breakConfig(&cfg)
		requireValueError(t, cfg.Validate(), flag)
	}
}

// A password of any process needs a prefix of roles, because it has no effect without.
func TestRolesValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []config.Roles{
		{DatabaseAPIPassword: "x"},
		{DatabaseWorkerPassword: "x"},
		{DatabaseReceiverPassword: "x"},
		{DatabaseDashboardPassword: "x"},
		{DatabaseNotifyPassword: "x"},
	} {
		requireValueError(t, c.Validate(), "database-roles")
		c.DatabaseRoles = "roomsensor"
		require.NoError(t, c.Validate())
	}
}

func TestLayoutValidate(t *testing.T) {
	t.Parallel()
	for _, age := range []config.Age{0, config.Age(day)} {
		require.NoError(t, (&config.Layout{ColumnstoreAfter: age, ReadingsKeep: age}).Validate())
	}
	requireValueError(t, (&config.Layout{ColumnstoreAfter: config.Age(day - 1)}).Validate(), "columnstore-after")
	requireValueError(t, (&config.Layout{ReadingsKeep: config.Age(day - 1)}).Validate(), "readings-keep")
	for _, length := range []config.ChunkInterval{
		config.ChunkIntervalUnchanged, config.ChunkIntervalAuto, config.ChunkInterval(day), config.ChunkInterval(90 * day),
	} {
		require.NoError(t, (&config.Layout{ChunkInterval: length}).Validate())
	}
	for _, length := range []time.Duration{12 * time.Hour, 36 * time.Hour, 91 * day} {
		requireValueError(t, (&config.Layout{ChunkInterval: config.ChunkInterval(length)}).Validate(), "chunk-interval")
	}
}

func TestSite(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ addr, public, docs, bound, wantPublic, wantDocs string }{
		{"127.0.0.1:8080", "", "", "127.0.0.1:8080", "http://127.0.0.1:8080", "http://127.0.0.1:8080/docs"},
		{"127.0.0.1:0", "", "", "127.0.0.1:40123", "http://127.0.0.1:40123", "http://127.0.0.1:40123/docs"},
		{"0.0.0.0:80", "", "", "0.0.0.0:80", "http://localhost:80", "http://localhost:80/docs"},
		{":8080", "", "", "[::]:8080", "http://localhost:8080", "http://localhost:8080/docs"},
		{"[::1]:8080", "", "", "[::1]:8080", "http://[::1]:8080", "http://[::1]:8080/docs"},
		{":80", "https://a.example/", "", "", "https://a.example", "https://a.example/docs"},
		{":80", "https://a.example", "https://docs.example/x/", "", "https://a.example", "https://docs.example/x"},
	} {
		site := config.Site{APIAddr: test.addr, PublicURL: test.public, DocsURL: test.docs}
		require.Equal(t, test.wantPublic, site.Public(test.bound))
		require.Equal(t, test.wantDocs, site.Docs(test.bound))
	}
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", " ": "", "10.1.2.3/8": "10.0.0.0/8", "192.0.2.7, 2001:db8::1": "192.0.2.7/32,2001:db8::1/128", "::/0": "::/0",
	} {
		var networks config.Networks
		require.NoError(t, networks.UnmarshalText([]byte(text)), text)
		require.Equal(t, want, networks.String())
	}
	for _, text := range []string{"x", "10.0.0.0/33", "10.0.0.1,", ",", "proxy.example.com", "fe80::1%eth0", "10.0.0.1:80"} {
		require.ErrorContains(t, new(config.Networks).UnmarshalText([]byte(text)), "must be IP addresses or networks", text)
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"": nil, "https://a.example": {"https://a.example"},
		"http://localhost:3000, https://b.example:8443,http://[::1]:5173": {"http://localhost:3000", "https://b.example:8443", "http://[::1]:5173"},
	} {
		var origins config.Origins
		require.NoError(t, origins.UnmarshalText([]byte(text)), text)
		require.Equal(t, want, origins.List)
	}
	for _, text := range []string{
		"*", "null", "a.example", "https://", "https://*.a.example", "https://a.example/", "https://a.example/x", "https://A.example",
		"https://a.example:443", "http://a.example:80", "https://a.example:", "https://a.example:x", "https://u@a.example", "ftp://a.example",
		"https://a.example?x", "https://a.example#x", "https://a.example,", "https://a.example https://b.example",
	} {
		require.ErrorContains(t, new(config.Origins).UnmarshalText([]byte(text)), "must be origins", text)
	}
}

// The start line has the values in force, also those that are not configured.
func TestLogsValuesInForce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	api := validAPI()
	require.NoError(t, api.TrustedProxies.UnmarshalText([]byte("10.0.0.1")))
	require.NoError(t, api.CORSOrigins.UnmarshalText([]byte("https://a.example")))
	log := zerolog.New(&out)
	log.Info().Object("config", &api).Send()
	for _, want := range []string{
		`"public_url":"http://127.0.0.1:8080"`, `"docs_url":"http://127.0.0.1:8080/docs"`, `"public_url_of_request":true`,
		`"trusted_proxies":"10.0.0.1/32"`, `"cors_origins":"https://a.example"`,
	} {
		require.Contains(t, out.String(), want)
	}
}

func TestOps(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"127.0.0.1:9080": "127.0.0.1:9080", "0.0.0.0:9080": "localhost:9080", ":1": "localhost:1", "[::]:2": "localhost:2",
		"ops:3": "ops:3",
	} {
		ops := config.Ops{OpsAddr: addr}
		require.NoError(t, ops.Validate())
		require.Equal(t, want, ops.Local())
	}
	requireValueError(t, (&config.Ops{OpsAddr: "9080"}).Validate(), "ops-addr")
}

func TestLogLevel(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]zerolog.Level{
		"trace": zerolog.TraceLevel, "debug": zerolog.DebugLevel, "info": zerolog.InfoLevel,
		"warn": zerolog.WarnLevel, "error": zerolog.ErrorLevel,
	} {
		log := config.Log{LogLevel: text}
		require.NoError(t, log.Validate())
		require.Equal(t, want, log.Level())
	}
	for _, text := range []string{"", "fatal", "panic", "disabled", "7", "verbose"} {
		log := config.Log{LogLevel: text}
		requireValueError(t, log.Validate(), "log-level")
	}
}

func TestLogsMaskSecrets(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := zerolog.New(config.MaskingWriter(&out))
	api, ingest := validAPI(), validIngest()
	log.Info().Object("config", &api).Msg("a")
	log.Info().Object("config", &ingest).Msg("b")
	log.Warn().Str("error", "cannot reach postgres://user:secret@db:5432/x").Msg("c")
	require.NotContains(t, out.String(), "secret")
	require.Contains(t, out.String(), `"database_url":"postgres://user:xxxxx@db:5432/roomsensor"`)
	require.Contains(t, out.String(), `"nats_url":"nats://user:xxxxx@queue:4222"`)
	require.Contains(t, out.String(), `"stream_max_bytes":"8GiB","stream_keep":"7d"`)
	require.Equal(t, 3, strings.Count(out.String(), "\n"))
}
