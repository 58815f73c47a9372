package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
)

func TestDatabaseURL(t *testing.T) {
	t.Parallel()
	for _, url := range []config.Secret{
		"postgres://user:secret@db:5432/roomsensor",
		"postgresql://db/roomsensor",
		"postgres://user:secret@a:5432,b:5433,c/roomsensor?target_session_attrs=primary",
		"postgres://[::1]:5432/roomsensor",
		"postgres:///roomsensor?host=/var/run/postgresql",
	} {
		require.NoError(t, (&config.Database{DatabaseURL: url}).Validate(), string(url))
	}
	for _, url := range []config.Secret{
		"", "db", "postgres", "db:5432", "mysql://user:secret@db/x", "postgres:db", "host=db password=secret",
		"postgres://user:secret@db:port/x", "postgres://user:secret@db:70000/x", "postgres://user:sec ret@db/x",
		"postgres://user:secret@a:5432,b:bad/x", "postgres://user:sec/ret@db/x", "://", "postgres://user:sec%zzret@db/x",
	} {
		requireValueError(t, (&config.Database{DatabaseURL: url}).Validate(), "database-url")
	}
	requireValueError(t, (&config.Database{DatabaseURL: "postgres://user:secret@db/x"}).Malformed(), "database-url")
}

func FuzzDatabaseURL(f *testing.F) {
	f.Add("postgres://user:secret@db:5432/roomsensor")
	f.Add("postgres://a,b:1/x?host=/tmp")
	f.Fuzz(func(t *testing.T, url string) {
		cfg := config.Database{DatabaseURL: config.Secret(url)}
		if err := cfg.Validate(); err != nil {
			requireValueError(t, err, "database-url")
			return
		}
		require.Contains(t, url, "://")
	})
}

func TestNATSURL(t *testing.T) {
	t.Parallel()
	for _, url := range []config.Secret{
		"nats://queue:4222", "nats://secret@queue", "tls://user:secret@queue:4222",
		"nats://a:4222,nats://b:4222, nats://c:4222", "ws://queue:80", "nats://[::1]:4222",
	} {
		require.NoError(t, (&config.Queue{NATSURL: url}).Validate(), string(url))
	}
	for _, url := range []config.Secret{
		"", "queue", "queue:4222", "http://queue:4222", "nats://", "nats://queue:x", "nats://a,b", "nats://user:sec ret@a",
	} {
		requireValueError(t, (&config.Queue{NATSURL: url}).Validate(), "nats-url")
	}
}

func TestPublicURL(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"https://sensors.example.com": true, "http://localhost:8080/": true, "https://example.com/sensors": true,
		"https://example.com/v1": false, "https://example.com/v1/": false, "https://u:secret@example.com": false,
		"https://example.com?a=b": false, "https://example.com#a": false, "https://": false, "https://example.com:x": false,
	} {
		site := config.Defaults[config.Site]()
		site.PublicURL = url
		if err := site.Validate(); ok {
			require.NoError(t, err, url)
		} else {
			requireValueError(t, err, "public-url")
		}
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
