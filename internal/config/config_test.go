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

func goodDatabase() config.Database {
	return config.Database{DatabaseURL: "postgres://user:secret@db:5432/roomsensor"}
}

func goodSite() config.Site { return config.Site{APIAddr: "127.0.0.1:8080"} }

func goodAPI() config.API {
	return config.API{
		Database: goodDatabase(), Log: config.Log{LogLevel: "info"},
		Site: goodSite(), OpsAddr: "127.0.0.1:9080",
	}
}

func goodIngest() config.Ingest {
	return config.Ingest{
		Database: goodDatabase(), Log: config.Log{LogLevel: "info"},
		Site:       goodSite(),
		Queue:      config.Queue{NATSURL: "nats://user:secret@queue:4222"},
		Stream:     config.Stream{StreamReplicas: 1, StreamMaxBytes: "8GiB", StreamKeep: "7d"},
		IngestAddr: "127.0.0.1:8081", OpsAddr: "127.0.0.1:9081",
	}
}

// requireProblem checks that an error names the flag and the variable.
func requireProblem(t *testing.T, err error, flag string) {
	t.Helper()
	var problem *config.ValueError
	require.ErrorAs(t, err, &problem)
	require.Equal(t, flag, problem.Flag)
	require.True(t, strings.HasPrefix(err.Error(), "--"+flag+" ("+config.Variable(flag)+") "), err.Error())
	require.NotContains(t, err.Error(), "secret")
}

func TestGoodConfigurations(t *testing.T) {
	t.Parallel()
	api, ingest := goodAPI(), goodIngest()
	require.NoError(t, api.Validate())
	require.NoError(t, ingest.Validate())
}

func TestDatabaseURL(t *testing.T) {
	t.Parallel()
	good := []string{
		"postgres://user:secret@db:5432/roomsensor",
		"postgresql://db/roomsensor",
		"postgres://user:secret@a:5432,b:5433,c/roomsensor?target_session_attrs=primary",
		"postgres://[::1]:5432/roomsensor",
		"postgres:///roomsensor?host=/var/run/postgresql",
	}
	for _, url := range good {
		require.NoError(t, (&config.Database{DatabaseURL: url}).Validate(), url)
	}
	bad := []string{
		"", "db", "db:5432", "mysql://user:secret@db/x", "postgres:db", "host=db password=secret",
		"postgres://user:secret@db:port/x", "postgres://user:secret@db:70000/x", "postgres://user:sec ret@db/x",
		"postgres://user:secret@a:5432,b:bad/x", "postgres://user:sec/ret@db/x", "://", "postgres://user:sec%zzret@db/x",
	}
	for _, url := range bad {
		requireProblem(t, (&config.Database{DatabaseURL: url}).Validate(), "database-url")
	}
	database := goodDatabase()
	requireProblem(t, database.Malformed(), "database-url")
}

func TestNATSURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"nats://queue:4222", "nats://secret@queue", "tls://user:secret@queue:4222",
		"nats://a:4222,nats://b:4222, nats://c:4222", "ws://queue:80", "nats://[::1]:4222",
	} {
		require.NoError(t, (&config.Queue{NATSURL: url}).Validate(), url)
	}
	for _, url := range []string{
		"", "queue", "queue:4222", "http://queue:4222", "nats://", "nats://queue:x", "nats://a,b", "nats://user:sec ret@a",
	} {
		requireProblem(t, (&config.Queue{NATSURL: url}).Validate(), "nats-url")
	}
}

func TestAPIProblems(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*config.API){
		"database-url": func(c *config.API) { c.DatabaseURL = "" },
		"log-level":    func(c *config.API) { c.LogLevel = "loud" },
		"api-addr":     func(c *config.API) { c.APIAddr = "8080" },
		"ops-addr":     func(c *config.API) { c.OpsAddr = "localhost:ops" },
		"public-url":   func(c *config.API) { c.PublicURL = "sensors.example.com" },
		"docs-url":     func(c *config.API) { c.DocsURL = "ftp://docs.example.com" },
	}
	for flag, spoil := range tests {
		cfg := goodAPI()
		spoil(&cfg)
		requireProblem(t, cfg.Validate(), flag)
	}
}

func TestPublicURL(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"https://sensors.example.com": true, "http://localhost:8080/": true, "https://example.com/sensors": true,
		"https://example.com/v1": false, "https://example.com/v1/": false, "https://u:secret@example.com": false,
		"https://example.com?a=b": false, "https://example.com#a": false, "https://": false, "https://example.com:x": false,
	} {
		cfg := goodAPI()
		cfg.PublicURL = url
		if err := cfg.Validate(); ok {
			require.NoError(t, err, url)
		} else {
			requireProblem(t, err, "public-url")
		}
	}
}

func TestDefaultsOfTheAddresses(t *testing.T) {
	t.Parallel()
	tests := []struct{ addr, public, docs, bound, wantPublic, wantDocs string }{
		{"127.0.0.1:8080", "", "", "127.0.0.1:8080", "http://127.0.0.1:8080", "http://127.0.0.1:8080/docs"},
		{"127.0.0.1:0", "", "", "127.0.0.1:40123", "http://127.0.0.1:40123", "http://127.0.0.1:40123/docs"},
		{"0.0.0.0:80", "", "", "0.0.0.0:80", "http://localhost:80", "http://localhost:80/docs"},
		{":8080", "", "", "[::]:8080", "http://localhost:8080", "http://localhost:8080/docs"},
		{"[::1]:8080", "", "", "[::1]:8080", "http://[::1]:8080", "http://[::1]:8080/docs"},
		{":80", "https://a.example/", "", "", "https://a.example", "https://a.example/docs"},
		{":80", "https://a.example", "https://docs.example/x/", "", "https://a.example", "https://docs.example/x"},
	}
	for _, test := range tests {
		cfg := goodAPI()
		cfg.APIAddr, cfg.PublicURL, cfg.DocsURL = test.addr, test.public, test.docs
		require.Equal(t, test.wantPublic, cfg.Public(test.bound))
		require.Equal(t, test.wantDocs, cfg.Docs(test.bound))
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
	requireProblem(t, (&config.Ops{OpsAddr: "9080"}).Validate(), "ops-addr")
}

func TestIngestProblems(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*config.Ingest){
		"database-url":      func(c *config.Ingest) { c.DatabaseURL = "db" },
		"nats-url":          func(c *config.Ingest) { c.NATSURL = "" },
		"docs-url":          func(c *config.Ingest) { c.DocsURL = "docs" },
		"log-level":         func(c *config.Ingest) { c.LogLevel = "" },
		"ingest-addr":       func(c *config.Ingest) { c.IngestAddr = "127.0.0.1:99999" },
		"ops-addr":          func(c *config.Ingest) { c.OpsAddr = "" },
		"stream-replicas":   func(c *config.Ingest) { c.StreamReplicas = 2 },
		"stream-max-bytes":  func(c *config.Ingest) { c.StreamMaxBytes = "8GB" },
		"stream-keep":       func(c *config.Ingest) { c.StreamKeep = "forever" },
		"rejects-keep":      func(c *config.Ingest) { c.RejectsKeep = "7d" }, // Not longer than the stream's.
		"rejects-max-bytes": func(c *config.Ingest) { c.RejectsMaxBytes = "1GB" },
		"no-worker":         func(c *config.Ingest) { c.NoReceiver, c.NoWorker = true, true },
	}
	for flag, spoil := range tests {
		cfg := goodIngest()
		spoil(&cfg)
		requireProblem(t, cfg.Validate(), flag)
	}
}

func TestStreamSizes(t *testing.T) {
	t.Parallel()
	stream := config.Stream{StreamReplicas: 3, StreamMaxBytes: "64GiB", StreamKeep: "36h"}
	require.NoError(t, stream.Validate())
	require.Equal(t, int64(64<<30), stream.MaxBytes())
	require.Equal(t, 36*time.Hour, stream.Keep())

	for _, size := range []string{"", "MiB", "1", "15MiB", "-1GiB", "+1GiB", "1.5GiB", "1gib", "1KiB", "99999999TiB"} {
		stream.StreamMaxBytes = size
		requireProblem(t, stream.Validate(), "stream-max-bytes")
	}
	stream.StreamMaxBytes = "1TiB"
	for _, keep := range []string{"", "d", "0d", "-1d", "1.5h", "7", "1w", "99999999999999d"} {
		stream.StreamKeep = keep
		requireProblem(t, stream.Validate(), "stream-keep")
	}
}

func TestRejectsOutliveTheStream(t *testing.T) {
	t.Parallel()
	cfg := goodIngest()
	require.Equal(t, 30*24*time.Hour, cfg.KeepRejects())
	require.Equal(t, int64(1<<30), cfg.MaxRejectBytes())
	cfg.RejectsKeep, cfg.RejectsMaxBytes = "169h", "512MiB"
	require.NoError(t, cfg.Validate())
	require.Equal(t, 169*time.Hour, cfg.KeepRejects())
	require.Equal(t, int64(512<<20), cfg.MaxRejectBytes())
	cfg.RejectsKeep = "168h"
	requireProblem(t, cfg.Validate(), "rejects-keep")
}

func TestLevel(t *testing.T) {
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
		requireProblem(t, log.Validate(), "log-level")
	}
}

func TestMask(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"postgres://user:secret@db:5432/x":              "postgres://user:xxxxx@db:5432/x",
		"postgres://user:se:cr@et@db:5432,b/x":          "postgres://user:xxxxx@db:5432,b/x",
		"postgres://user@db/x":                          "postgres://user@db/x",
		"postgres://db/x?password=secret&sslmode=off":   "postgres://db/x?password=xxxxx&sslmode=off",
		"postgres://db/x?sslmode=off&sslpassword=se=ct": "postgres://db/x?sslmode=off&sslpassword=xxxxx",
		"nats://secret@queue:4222":                      "nats://xxxxx@queue:4222",
		"nats://u:secret@a,nats://u:secret@b":           "nats://u:xxxxx@a,nats://u:xxxxx@b",
		"dial `nats://u:secret@a:1`: refused, see b@c":  "dial `nats://u:xxxxx@a:1`: refused, see b@c",
		`{"a":"http://h:80","b":"x@y"}`:                 `{"a":"http://h:80","b":"x@y"}`,
		"http://127.0.0.1:8080/docs and a@b":            "http://127.0.0.1:8080/docs and a@b",
		"Bearer rsk_abc-7_se_cret, rsi_a_b":             "Bearer rsk_abc-7_xxxxx rsi_a_xxxxx",
		`{"panic":"/readings.csv?key=rsk_a_b&last=1h"}`: `{"panic":"/readings.csv?key=rsk_a_xxxxx&last=1h"}`,
		"rsk_<key_id>_<secret>":                         "rsk_<key_id>_<secret>",
	}
	for text, want := range tests {
		require.Equal(t, want, config.Mask(text))
	}
}

func TestLogsShowNoSecret(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := zerolog.New(config.MaskingWriter(&out))
	api, ingest := goodAPI(), goodIngest()
	log.Info().Object("config", &api).Msg("a")
	log.Info().Object("config", &ingest).Msg("b")
	log.Warn().Str("cause", "cannot reach postgres://user:secret@db:5432/x").Msg("c")
	require.NotContains(t, out.String(), "secret")
	require.Contains(t, out.String(), `"database_url":"postgres://user:xxxxx@db:5432/roomsensor"`)
	require.Contains(t, out.String(), `"nats_url":"nats://user:xxxxx@queue:4222"`)
	require.Equal(t, 3, strings.Count(out.String(), "\n"))
}

func FuzzDatabaseURL(f *testing.F) {
	f.Add("postgres://user:secret@db:5432/roomsensor")
	f.Add("postgres://a,b:1/x?host=/tmp")
	f.Fuzz(func(t *testing.T, url string) {
		cfg := config.Database{DatabaseURL: url}
		if err := cfg.Validate(); err != nil {
			requireProblem(t, err, "database-url")
			return
		}
		require.Contains(t, url, "://")
	})
}
