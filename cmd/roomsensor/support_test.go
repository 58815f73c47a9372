package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/natstest"
	"roomsensor/test/secretscan"
)

// readBundle returns the parts of a bundle.
func readBundle(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	unpacked, err := gzip.NewReader(file)
	require.NoError(t, err)
	parts := map[string]string{}
	for in := tar.NewReader(unpacked); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return parts
		}
		require.NoError(t, err)
		text, err := io.ReadAll(in)
		require.NoError(t, err)
		parts[strings.TrimPrefix(header.Name, "roomsensor-support/")] = string(text)
	}
}

// TestSupportBundle checks the parts of a bundle, and that it has none of the secrets that are in every setting, in the
// answers of a process and in a log. It takes 4 s, most of them for the log of 5 MiB and for doctor.
func TestSupportBundle(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.environment["NATS_URL"] = natstest.New(t).URL
	o.do("stream", "confirm")
	secrets := plantSecrets(t, o.environment)
	var leaks []string
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		leaks = append(leaks, name+"=postgres://user:"+secrets[name]+"@host/x")
	}
	leak := strings.Join(leaks, "\n") + "\n"
	process := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, leak) }))
	defer process.Close()
	dir := t.TempDir()
	log, path := filepath.Join(dir, "api.log"), filepath.Join(dir, "bundle.tar.gz")
	long := strings.Repeat("an old line\n", 5<<20/12) + leak
	require.NoError(t, os.WriteFile(log, []byte(long), 0o600))

	list := o.do("support-bundle", "--file", path, "--log", log,
		"--process", strings.TrimPrefix(process.URL, "http://")+",127.0.0.1:1")["data"].([]any)
	parts := readBundle(t, path)
	failed := 0
	for _, item := range list {
		part := item.(map[string]any)
		if part["error"] == nil {
			require.Contains(t, parts, part["name"])
		} else {
			failed++
			require.Contains(t, part["error"], "connection refused")
		}
	}
	require.Equal(t, 4, failed, "the parts of the process that does not run")
	for name, want := range map[string]string{
		"version.json": `"go": "go`, "doctor.json": `"check": "database migrations"`, "migrations.json": `"up_to_date": true`,
		"stream.json": `"name": "ingest"`, "tables.json": `"name": "readings"`, "settings.json": `"DATABASE_API_PASSWORD": "xxxxx"`,
		"logs/1-api.log": "an old line", "contents.json": "connection refused",
	} {
		require.Contains(t, parts[name], want, name)
	}
	require.Less(t, len(parts["logs/1-api.log"]), 4<<20+1)
	require.True(t, strings.HasPrefix(parts["logs/1-api.log"], "an old line\n"), "whole lines only")
	for name, text := range parts {
		require.Empty(t, secretscan.Find([]byte(text), secrets), name)
		require.Empty(t, secretscan.Keys([]byte(text)), name)
	}
	o.fails(cli.ExitFailure, "Give another --file", "support-bundle", "--file", path)
}

// plantSecrets sets every setting to a value with a secret, and returns the secrets by the name of the setting. It leaves
// out those which the command itself needs, and the name of a file that may be any text. A value is invalid where no valid one contains a secret.
func plantSecrets(t *testing.T, environment map[string]string) map[string]string {
	t.Helper()
	parser, err := program().Parser(&cli.Terminal{Stdout: io.Discard, Stderr: io.Discard})
	require.NoError(t, err)
	secrets := map[string]string{}
	own := []string{"DATABASE_URL", "NATS_URL", "NATS_CA", "NATS_MONITORING_URL", "PUBLIC_URL", "PGBOUNCER", "STREAM_KEEP", "READ_DATABASE_URL", "PASSWORD_LIST"}
	for _, command := range parser.Model.Leaves(false) {
		for _, flag := range command.Flags {
			name := config.Variable(flag.Name)
			if !flag.Tag.Has("setting") || slices.Contains(own, name) {
				continue
			}
			id, key, _ := roomsensor.GenerateKey(roomsensor.APIKey)
			secret := key[strings.LastIndex(key, "_")+1:]
			secrets[name] = secret
			environment[name] = map[string]string{
				"INGEST_KEY":                 "rsi_" + id + "_" + secret,
				"ROOMSENSOR_API_KEY":         key,
				"SMTP_URL":                   "smtp://user:" + secret + "@mail.example:587",
				"MQTT_URL":                   "mqtt://user:" + secret + "@broker.example",
				"OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20" + secret,
			}[name]
			if environment[name] == "" {
				environment[name] = secret
			}
		}
	}
	require.Greater(t, len(secrets), 40)
	return secrets
}
