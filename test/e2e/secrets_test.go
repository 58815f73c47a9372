package e2e_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
	"roomsensor/test/openapitest"
	"roomsensor/test/proctest"
	"roomsensor/test/secretscan"
)

// secretsEnv is an env whose secrets are known, and everything that its processes wrote.
type secretsEnv struct {
	*streamEnv
	secrets map[string]string           // by name
	written map[string]*proctest.Output // by source
}

func newSecretsEnv(t *testing.T) *secretsEnv {
	t.Helper()
	e := &secretsEnv{streamEnv: newStreamEnv(t), secrets: map[string]string{}, written: map[string]*proctest.Output{}}
	e.settings["LOG_LEVEL"] = "debug"
	for name, key := range map[string]string{"API key": e.key, "ingest key": e.ingestKey} {
		e.secrets[name] = key[strings.LastIndex(key, "_")+1:]
	}
	return e
}

// newSecret returns a new secret that must not be written.
func (e *secretsEnv) newSecret(name string) string {
	_, text, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	e.secrets[name] = text[len(text)-24:]
	return e.secrets[name]
}

// withPassword returns a setting that is a URL with a password, which becomes a secret if it is not too short.
func (e *secretsEnv) withPassword(setting string) string {
	e.t.Helper()
	u, err := url.Parse(e.settings[setting])
	require.NoError(e.t, err)
	password, has := u.User.Password()
	switch {
	case !has:
		u.User = url.UserPassword(cmp.Or(u.User.Username(), "user"), e.newSecret(setting))
	case len(password) >= secretscan.Least:
		e.secrets[setting] = password
	}
	return u.String()
}

// from returns where the output of a source is collected.
func (e *secretsEnv) from(source string) *proctest.Output {
	if e.written[source] == nil {
		e.written[source] = &proctest.Output{}
	}
	return e.written[source]
}

// launch prepares a process whose log is collected.
func (e *secretsEnv) launch(name string, args ...string) *server {
	e.t.Helper()
	s := e.prepare(args...)
	s.log = e.from("log of " + name)
	s.command.Log = s.log
	return s
}

// collect sends a request with header lines, once without and once with an additional credential, and collects the
// responses.
func (e *secretsEnv) collect(source, method, url, body, key string, lines ...string) {
	e.t.Helper()
	for _, extra := range []string{"", "Authorization: Bearer " + key} {
		request, err := http.NewRequestWithContext(e.t.Context(), method, url, strings.NewReader(body))
		require.NoError(e.t, err)
		request.Header.Set("Content-Type", "application/json")
		for _, line := range append([]string{extra}, lines...) {
			if name, value, ok := strings.Cut(line, ": "); ok {
				request.Header.Set(name, value)
			}
		}
		got, err := e.client.Do(request)
		require.NoError(e.t, err)
		text, err := io.ReadAll(got.Body)
		require.NoError(e.t, err)
		require.NoError(e.t, got.Body.Close())
		require.NotEqual(e.t, http.StatusInternalServerError, got.StatusCode)
		require.NoError(e.t, got.Header.Write(e.from(source)))
		_, _ = e.from(source).Write(append(uncompressed(e.t, text), '\n'))
	}
}

// uncompressed undoes the compression of profiles.
func uncompressed(t *testing.T, body []byte) []byte {
	t.Helper()
	if !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		return body
	}
	compressed, err := gzip.NewReader(bytes.NewReader(body))
	require.NoError(t, err)
	body, err = io.ReadAll(compressed)
	require.NoError(t, err)
	return body
}

// collectOps collects everything that the ops address of a process shows.
func (e *secretsEnv) collectOps(name string, s *server) {
	e.t.Helper()
	for _, path := range []string{
		"/metrics", "/livez", "/readyz", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/symbol", "/debug/pprof/profile?seconds=1",
		"/debug/pprof/trace?seconds=0.1", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap", "/debug/pprof/heap?debug=1",
		"/debug/pprof/allocs?debug=1", "/debug/pprof/block?debug=1", "/debug/pprof/mutex?debug=1", "/debug/pprof/threadcreate?debug=1",
	} {
		e.collect("ops of "+name, http.MethodGet, "http://"+s.ops+path, "", "")
	}
	require.Regexp(e.t, `:xxxxx@`, e.from("ops of "+name), "the command line is shown without passwords")
}

// collectBundle collects what a support bundle has of the processes.
func (e *secretsEnv) collectBundle(servers map[string]*server) {
	e.t.Helper()
	path, log := filepath.Join(e.t.TempDir(), "bundle.tar.gz"), filepath.Join(e.t.TempDir(), "log")
	require.NoError(e.t, os.WriteFile(log, []byte(e.from("log of api").String()), 0o600))
	args := []string{"support-bundle", "--file", path, "--log", log}
	for _, s := range servers {
		args = append(args, "--process", s.ops)
	}
	for _, part := range e.list(args...) {
		require.Nil(e.t, part["error"], part)
	}
	bundle, err := os.ReadFile(path)
	require.NoError(e.t, err)
	_, _ = e.from("support bundle").Write(uncompressed(e.t, bundle))
	for _, want := range []string{`"database_url":"postgres://`, "roomsensor_api_requests_total", "goroutine profile", `"message":"request"`} {
		require.Contains(e.t, e.from("support bundle").String(), want)
	}
}

// collectTables collects all rows of all tables.
func (e *secretsEnv) collectTables() {
	e.t.Helper()
	found, err := e.sql.Query(e.t.Context(), `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)
	require.NoError(e.t, err)
	names, err := pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(e.t, err)
	for _, name := range names {
		found, err = e.sql.Query(e.t.Context(), fmt.Sprintf(`SELECT t::text FROM %s t`, pgx.Identifier{name}.Sanitize()))
		require.NoError(e.t, err)
		rows, err := pgx.CollectRows(found, pgx.RowTo[string])
		require.NoError(e.t, err)
		_, _ = io.WriteString(e.from("tables"), strings.Join(rows, "\n"))
	}
	require.Contains(e.t, e.from("tables").String(), "dev:1")
}

// requireNoSecrets searches everything that was written for every secret.
func (e *secretsEnv) requireNoSecrets() {
	e.t.Helper()
	require.GreaterOrEqual(e.t, len(e.secrets), 4)
	for source, out := range e.written {
		require.Empty(e.t, secretscan.Find([]byte(out.String()), e.secrets), source)
		require.Empty(e.t, secretscan.Keys([]byte(out.String())), source)
	}
}

// TestSecrets runs processes that log everything, with passwords on their command lines, and sends requests with keys
// where they belong and where they do not. No secret is in a log, response, metric, profile or table.
func TestSecrets(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 26 a", "decision 24 c", "decision 34 a", "decision 36", "spec 5, rule 5, secret")
	e := newSecretsEnv(t)
	device := e.newDevice("dev:1")
	revokedID, revoked := e.newKey()
	e.secrets["revoked key"] = revoked[strings.LastIndex(revoked, "_")+1:]
	e.command("key", "revoke", revokedID)

	database, queue := "--database-url="+e.withPassword("DATABASE_URL"), "--nats-url="+e.withPassword("NATS_URL")
	servers := map[string]*server{
		"api":      e.launch("api", "api", database),
		"receiver": e.launch("receiver", "ingest", "--no-worker", database, queue),
		"worker":   e.launch("worker", "ingest", "--no-receiver", database, queue),
	}
	for _, s := range servers {
		e.restart(s)
	}
	e.misuseAPI(servers["api"].url, device, revoked)
	e.misuseReceiver(servers["receiver"].url)
	e.collectBundle(servers)
	for name, s := range servers {
		e.collectOps(name, s)
		e.stop(s)
	}
	e.collectTables()
	require.Contains(t, e.from("log of api").String(), e.keyID, "the public part of the key is logged")
	e.requireNoSecrets()
}

// misuseAPI sends every operation with keys in every part of a request.
func (e *secretsEnv) misuseAPI(base, device, revoked string) {
	e.t.Helper()
	for _, operation := range openapitest.API().Operations() {
		e.exec("DELETE FROM rate_windows") // So that no key reaches its limit.
		method, path, _ := strings.Cut(operation, " ")
		url := base + "/v1" + strings.ReplaceAll(path, "{device_id}", device)
		for _, key := range []string{e.key, e.key + "x", revoked, e.ingestKey} {
			for _, place := range keyInURL(url, key) {
				e.collect("responses of the API", method, place, `{"metadata":{}}`, key, "Authorization: Bearer "+key)
			}
		}
		for _, line := range keyInHeader(e.key) {
			e.collect("responses of the API", method, url, `{"metadata":{}}`, e.key, line)
		}
	}
	for _, body := range []string{`KEY`, `"KEY"`, `{"KEY":1}`, `{"display_name":1,"KEY":1}`, `{"metadata":{"KEY":1}}`, `{"metadata":"KEY"}`, `{"assignment":"KEY"}`} {
		e.collect("responses of the API", http.MethodPatch, base+"/v1/devices/"+device, strings.ReplaceAll(body, "KEY", e.key), e.key)
	}
	for _, path := range []string{"/", "/KEY", "/docs?key=KEY", "/docs/KEY", "/docs/errors/KEY", "/docs/errors/none?key=KEY", "/v1?key=KEY", "/v1/KEY?KEY"} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions} {
			e.collect("responses of the API", method, base+strings.ReplaceAll(path, "KEY", e.key), "", e.key)
		}
	}
	e.sendBrokenHTTP("responses of the API", base, e.key)
}

// keyInURL returns a URL with a key where one endpoint allows it, and where none does.
func keyInURL(url, key string) (all []string) {
	all = []string{url, url + "/" + key, url + "/..%2f" + key, strings.Replace(url, "/v1/", "/v1/"+key+"/", 1)}
	for _, query := range []string{
		"key=KEY", "key=KEY&key=KEY", "key=KEY;a", "key=KEY&last=%zz", "key=KEY%00", "KEY", "KEY=1", "apikey=KEY", "key=KEY&shape=tall",
		"cursor=KEY", "limit=KEY", "last=KEY", "from=KEY", "devices=KEY", "assignment_id=KEY", "shape=KEY", "metadata.KEY=%ff", "metadata.site=KEY",
		"reason=KEY", "hardware_id=KEY", "since=KEY", "dry_run=KEY", "dry_run=true&KEY",
	} {
		all = append(all, url+"?"+strings.ReplaceAll(query, "KEY", key))
	}
	return all
}

// keyInHeader returns header lines with a key where it does not belong. An Idempotency-Key is stored as the client sent
// it, so it is not among them.
func keyInHeader(key string) (all []string) {
	for _, line := range []string{
		"Authorization: KEY", "Authorization: Basic KEY", "Authorization: bearer:KEY", "Authorization: Bearer KEY=KEY", "X-Api-Key: KEY",
		"Cookie: key=KEY", "User-Agent: KEY", "Referer: https://example.com/v1/readings.csv?key=KEY", "X-Request-Id: KEY", "Accept-Encoding: KEY",
		"If-None-Match: KEY", "Content-Type: KEY", "Content-Encoding: KEY", "X-Forwarded-For: KEY", "traceparent: KEY",
	} {
		all = append(all, strings.ReplaceAll(line, "KEY", key))
	}
	return all
}

// misuseReceiver does the same to the receiver.
func (e *secretsEnv) misuseReceiver(base string) {
	e.t.Helper()
	const upload = `{"hardware_id":"dev:1","readings":[]}`
	for _, key := range []string{e.ingestKey, e.ingestKey + "x", e.key} {
		for _, place := range keyInURL(base+"/uploads", key) {
			e.collect("responses of the receiver", http.MethodPost, place, upload, key)
		}
		for _, place := range keyInURL(base+"/rejects", key) {
			e.collect("responses of the receiver", http.MethodGet, place, "", key, "Authorization: Bearer "+e.ingestKey)
		}
		for _, line := range keyInHeader(key) {
			e.collect("responses of the receiver", http.MethodPost, base+"/uploads", upload, key, line)
		}
		for _, body := range []string{key, `{"` + key + `":1}`, `{"hardware_id":"` + key + `","readings":[]}`, upload + "\n" + key} {
			e.collect("responses of the receiver", http.MethodPost, base+"/uploads", body, key)
		}
		for _, query := range []string{"", "?dry_run=true"} { // As an unknown member.
			e.collect("responses of the receiver", http.MethodPost, base+"/uploads"+query, upload[:len(upload)-1]+`,"`+key+`":1}`, key,
				"Authorization: Bearer "+e.ingestKey)
		}
	}
	e.sendBrokenHTTP("responses of the receiver", base, e.ingestKey)
	for _, tc := range []struct{ body, encoding string }{
		{"", ""},
		{"\xff\xfe", ""},
		{`{"hardware_id":"dev:1","readings":[1e999,]}`, ""},
		{`{"hardware_id":"dev:1","readings":[],"readings":[]}`, ""},
		{`{"hardware_id":"'; DROP TABLE readings","readings":[]}`, ""},
		{strings.Repeat("[", 20_000), ""},
		{"not gzip", "gzip"},
		{"\x1f\x8b\x08\x00\x00", "gzip"},
		{"not zstd", "zstd"},
		{"\x28\xb5\x2f\xfd\xff\xff\xff\xff", "zstd"},
		{"{}", "br"},
	} {
		e.collect("responses of the receiver", http.MethodPost, base+"/uploads", tc.body, e.ingestKey, "Content-Encoding: "+tc.encoding)
	}
	require.NotRegexp(e.t, `(?i)\b(json:|jsontext|invalid character|EOF|magic|gzip:|zstd:|goroutine|\w+\.go)\b`,
		e.from("responses of the receiver"), "messages of a library")
}

// sendBrokenHTTP sends requests with keys that are not valid HTTP, or hardly.
func (e *secretsEnv) sendBrokenHTTP(source, base, key string) {
	e.t.Helper()
	for _, text := range []string{
		"GET /v1/readings.csv?key=KEY HTTP/9.9\r\n\r\n", "GET /v1/readings.csv?key=KEY\r\n\r\n", "KEY\r\n\r\n", "KEY / HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /v1/readings.csv?key=KEY HTTP/1.1\r\nHost: x\r\nKEY\r\n\r\n", "GET /%zz?key=KEY HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET http://u:KEY@x/v1/team HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "GET /v1/team HTTP/1.1\r\nHost: KEY\r\nConnection: close\r\n\r\n",
		"PATCH /v1/team?key=KEY HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: KEY\r\n\r\n", "POST /uploads?key=KEY HTTP/1.1\r\nHost: x\r\nContent-Length: KEY\r\n\r\n",
		"GET /v1/team HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\nX: " + strings.Repeat("KEY", 2000) + "\r\n\r\n",
	} {
		conn, err := (&net.Dialer{}).DialContext(e.t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
		require.NoError(e.t, err)
		_, err = io.WriteString(conn, strings.ReplaceAll(text, "KEY", key))
		require.NoError(e.t, err)
		require.NoError(e.t, conn.(*net.TCPConn).CloseWrite())
		_, _ = io.Copy(e.from(source), conn) // The server may break the connection.
		require.NoError(e.t, conn.Close())
	}
}

// TestSecretsInErrors runs commands that fail and processes that cannot connect. Their messages contain no secret.
func TestSecretsInErrors(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 36")
	e := newSecretsEnv(t)
	database, queue, key := e.newSecret("database password"), e.newSecret("NATS password"), e.newSecret("secret of a key")
	base := "postgres://user:" + database + "@"
	for _, args := range [][]string{
		{"api", "--database-url=" + base + "db:port/x"},
		{"api", "--database-url", "host=db password=" + database},
		{"api", "--database-url", base + "db/x?sslmode=perhaps"},
		{"api", "--database-url", "mysql://u:" + database + "@db/x"},
		{"api", "--database-url", "postgres://user:a b" + database + "@db/x"},
		{"api", "--database-url", database},
		{"api", "--database-url", "postgres://user:%zz" + database + "@db/x"},
		{"api", "--database-url", "postgres://db/x?password=" + database + "&sslmode=no"},
		{"api", "--databse-url=" + base + "db/x"},
		{"api", base + "db/x"},
		{"version", "--database-url", base + "db/x"},
		{"migrate", "sideways", base + "db/x"},
		{"api", "--public-url=https://u:" + database + "@example.com", "--database-url", base + "127.0.0.1:1/x"},
		{"team", "list", "--database-url", base + "127.0.0.1:1/x"},
		{"migrate", "up", "--database-url", base + "127.0.0.1:1/x"},
		{"ingest", "--nats-url", "http://u:" + queue + "@q", "--database-url", base + "db/x"},
		{"ingest", "--nats-url", "nats://" + queue + "@q:x", "--database-url", base + "db/x"},
		{"ingest", "--nats-url", "nats://u:" + queue + "@q,nats://u:" + queue + "@q:99999", "--database-url", base + "db/x"},
		{"upload", "--nats-url", "nats://u:" + queue + "@127.0.0.1:1"},
		{"upload", "--nats-url", "nats://" + queue + "@127.0.0.1:1", "/nonexistent"},
		{"key", "revoke", "rsk_abc_" + key},
		{"ingest-key", "revoke", "rsi_abc_" + key},
		{"api", "rsk_abc_" + key},
		{"key", "create", "--team", "rsk_abc_" + key},
		{"key", "rsk_abc_" + key},
		{"upload", "--key=rsi_abc_" + key},
	} {
		r := e.run(nil, args...)
		require.NotZero(t, r.code, args)
		require.NotEmpty(t, r.stderr)
		_, _ = io.WriteString(e.from(strings.Join(args[:2], " ")), r.out+r.stderr)
	}
	for name, args := range map[string][]string{
		"api":    {"api", "--database-url", base + "127.0.0.1:1/x"},
		"ingest": {"ingest", "--database-url", base + "127.0.0.1:1/x", "--nats-url", "nats://u:" + queue + "@127.0.0.1:1"},
	} {
		s := e.launch(name, args...)
		e.startUnready(s)
		require.Eventually(t, func() bool { return strings.Contains(s.log.String(), `"level":"warn"`) }, patience, pollEvery)
		e.collectOps(name, s)
		e.stop(s)
	}
	e.requireNoSecrets()
}
