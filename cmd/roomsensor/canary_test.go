package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/canary"
	"roomsensor/internal/conformance"
	"roomsensor/internal/dbtest"
	"roomsensor/internal/natstest"
	"roomsensor/internal/openapitest"
	"roomsensor/internal/procs"
	"roomsensor/internal/roomsensor"
)

// mine is a site of real processes at level debug whose every secret is a canary, and all that they wrote.
type mine struct {
	*operator
	secrets map[string]string
	written map[string]*output // by who or what wrote it
	client  *http.Client
	conn    *pgx.Conn
}

func dig(t *testing.T) *mine {
	t.Helper()
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	m := &mine{secrets: map[string]string{}, written: map[string]*output{}, client: &http.Client{Transport: openapitest.Transport(transport)}}
	m.operator = &operator{t, map[string]string{"DATABASE_URL": dbtest.New(t).URL, "NATS_URL": natstest.New(t).URL}}
	for setting, name := range map[string]string{"DATABASE_URL": "database password", "NATS_URL": "NATS password"} {
		m.environment[setting] = m.withPassword(m.environment[setting], name)
	}
	var err error
	m.conn, err = pgx.Connect(t.Context(), m.environment["DATABASE_URL"])
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.conn.Close(context.Background())) })
	return m
}

// secret makes a canary.
func (m *mine) secret(name string) string {
	_, text, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	m.secrets[name] = text[len(text)-24:]
	return m.secrets[name]
}

// withPassword puts a canary into a URL. A password that is there already is one, unless it is too short.
func (m *mine) withPassword(text, name string) string {
	m.t.Helper()
	u, err := url.Parse(text)
	require.NoError(m.t, err)
	password, has := u.User.Password()
	switch {
	case !has:
		u.User = url.UserPassword(cmp.Or(u.User.Username(), "user"), m.secret(name))
	case len(password) >= canary.Least:
		m.secrets[name] = password
	}
	return u.String()
}

// credential makes a key, whose secret is a canary.
func (m *mine) credential(name string, command ...string) string {
	m.t.Helper()
	text := m.id("key", command...)
	m.secrets[name] = text[strings.LastIndex(text, "_")+1:]
	return text
}

// by is where somebody's words are gathered.
func (m *mine) by(name string) *output {
	if m.written[name] == nil {
		m.written[name] = &output{}
	}
	return m.written[name]
}

// start runs a process whose passwords are on its command line, until the test ends.
func (m *mine) start(name string, args ...string) (public, ops string, p *procs.Process) {
	m.t.Helper()
	self, err := os.Executable()
	require.NoError(m.t, err)
	public, err = procs.FreeAddress()
	require.NoError(m.t, err)
	ops, err = procs.FreeAddress()
	require.NoError(m.t, err)
	p, err = procs.Start(procs.Command{Path: self, Args: args, Log: m.by("log of the " + name), Env: []string{
		asProgram + "=1", "LOG_LEVEL=debug", "API_ADDR=" + public, "INGEST_ADDR=" + public, "OPS_ADDR=" + ops,
	}})
	require.NoError(m.t, err)
	m.t.Cleanup(p.Kill)
	return public, ops, p
}

// serve is start, and waits until the process is ready.
func (m *mine) serve(name string, args ...string) (public, ops string, p *procs.Process) {
	m.t.Helper()
	public, ops, p = m.start(name, append(args, "--database-url", m.environment["DATABASE_URL"])...)
	ctx, cancel := context.WithTimeout(m.t.Context(), bearable)
	defer cancel()
	require.NoError(m.t, p.AwaitReady(ctx, ops), m.by("log of the "+name).String())
	return public, ops, p
}

// take sends a request and keeps the whole answer.
func (m *mine) take(from string, request *http.Request) (status int) {
	m.t.Helper()
	got, err := m.client.Do(request)
	require.NoError(m.t, err)
	body, err := io.ReadAll(got.Body)
	require.NoError(m.t, err)
	require.NoError(m.t, got.Body.Close())
	out := m.by(from)
	require.NoError(m.t, got.Header.Write(out))
	_, _ = out.Write(append(plain(m.t, body), '\n'))
	return got.StatusCode
}

// plain is a text without the compression of profiles.
func plain(t *testing.T, body []byte) []byte {
	t.Helper()
	if !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		return body
	}
	zipped, err := gzip.NewReader(bytes.NewReader(body))
	require.NoError(t, err)
	body, err = io.ReadAll(zipped)
	require.NoError(t, err)
	return body
}

// look keeps all that a process shows on its ops address.
func (m *mine) look(name, ops string) {
	m.t.Helper()
	for _, path := range []string{
		"/metrics", "/livez", "/readyz", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/symbol", "/debug/pprof/profile?seconds=1",
		"/debug/pprof/trace?seconds=1", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap", "/debug/pprof/heap?debug=1",
		"/debug/pprof/allocs?debug=1", "/debug/pprof/block?debug=1", "/debug/pprof/mutex?debug=1", "/debug/pprof/threadcreate?debug=1",
	} {
		request, err := http.NewRequestWithContext(m.t.Context(), http.MethodGet, "http://"+ops+path, nil)
		require.NoError(m.t, err)
		m.take("ops of the "+name, request)
	}
	require.Regexp(m.t, `:xxxxx@`, m.by("ops of the "+name), "the command line is there, without passwords")
}

// tables are all rows of all tables, as text.
func (m *mine) tables() {
	m.t.Helper()
	found, err := m.conn.Query(m.t.Context(), `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)
	require.NoError(m.t, err)
	names, err := pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(m.t, err)
	for _, name := range names {
		found, err = m.conn.Query(m.t.Context(), fmt.Sprintf(`SELECT t::text FROM %s t`, pgx.Identifier{name}.Sanitize()))
		require.NoError(m.t, err)
		rows, err := pgx.CollectRows(found, pgx.RowTo[string])
		require.NoError(m.t, err)
		_, _ = io.WriteString(m.by("tables"), strings.Join(rows, "\n"))
	}
	require.Contains(m.t, m.by("tables").String(), "dev:1")
}

// requireSilence looks for every secret in everything that was written.
func (m *mine) requireSilence() {
	m.t.Helper()
	require.GreaterOrEqual(m.t, len(m.secrets), 4)
	for name, out := range m.written {
		require.Empty(m.t, canary.Find([]byte(out.String()), m.secrets), name)
		require.Empty(m.t, canary.Keys([]byte(out.String())), name)
	}
}

// Real processes that log all they can, asked for everything in good and in bad ways with secrets in all places where
// they belong and in many where they do not: none is in what they wrote.
func TestSecretsAreWrittenNowhere(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 26.1", "decision 24.3", "decision 36", "spec 5, rule 5, secret")
	m := dig(t)
	team := m.team()
	device := m.device(team, "dev:1")
	keys := map[string]string{
		"key":     m.credential("API key", "key", "create", "--team", team, "--scope", "read_write"),
		"revoked": m.credential("revoked key", "key", "create", "--team", team),
		"ingest":  m.credential("ingest key", "ingest-key", "create", "--team", team),
	}
	m.do("key", "revoke", strings.Split(keys["revoked"], "_")[1])
	nats := "--nats-url=" + m.environment["NATS_URL"]
	api, apiOps, apiProcess := m.serve("api", "api")
	receiver, receiverOps, receiverProcess := m.serve("receiver", "ingest", "--no-worker", nats)
	_, workerOps, workerProcess := m.serve("worker", "ingest", "--no-receiver", nats)

	m.misuse(api, device, keys)
	m.misuseReceiver(receiver, keys)
	m.look("api", apiOps)
	m.look("receiver", receiverOps)
	m.look("worker", workerOps)
	for _, p := range []*procs.Process{apiProcess, receiverProcess, workerProcess} {
		_, err := p.Stop(bearable)
		require.NoError(t, err)
	}
	m.tables()
	require.Contains(t, m.by("log of the api").String(), strings.Split(keys["key"], "_")[1], "the public part of the key is logged")
	m.requireSilence()
}

// Processes that cannot start, or not yet, and commands that are written wrong.
func TestSecretsAreNotInComplaints(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 36")
	m := dig(t)
	database, nats, key := m.secret("password of the database"), m.secret("password of NATS"), m.secret("secret of a key")
	u := "postgres://user:" + database + "@"
	for _, args := range [][]string{
		{"api", "--database-url=" + u + "db:port/x"},
		{"api", "--database-url", "host=db password=" + database},
		{"api", "--database-url", u + "db/x?sslmode=perhaps"},
		{"api", "--database-url", "mysql://u:" + database + "@db/x"},
		{"api", "--database-url", "postgres://user:a b" + database + "@db/x"},
		{"api", "--database-url", database},
		{"api", "--database-url", "postgres://user:%zz" + database + "@db/x"},
		{"api", "--database-url", "postgres://db/x?password=" + database + "&sslmode=no"},
		{"api", "--databse-url=" + u + "db/x"},
		{"api", u + "db/x"},
		{"version", "--database-url", u + "db/x"},
		{"migrate", "sideways", u + "db/x"},
		{"api", "--public-url=https://u:" + database + "@example.com", "--database-url", u + "127.0.0.1:1/x"},
		{"team", "list", "--database-url", u + "127.0.0.1:1/x"},
		{"migrate", "up", "--database-url", u + "127.0.0.1:1/x"},
		{"ingest", "--nats-url", "http://u:" + nats + "@q", "--database-url", u + "db/x"},
		{"ingest", "--nats-url", "nats://" + nats + "@q:x", "--database-url", u + "db/x"},
		{"ingest", "--nats-url", "nats://u:" + nats + "@q,nats://u:" + nats + "@q:99999", "--database-url", u + "db/x"},
		{"upload", "--nats-url", "nats://u:" + nats + "@127.0.0.1:1"},
		{"upload", "--nats-url", "nats://" + nats + "@127.0.0.1:1", "/nonexistent"},
		{"key", "revoke", "rsk_abc_" + key},
		{"ingest-key", "revoke", "rsi_abc_" + key},
		{"api", "rsk_abc_" + key},
		{"key", "create", "--team", "rsk_abc_" + key},
		{"key", "rsk_abc_" + key},
		{"simulate", "--key=rsi_abc_" + key},
	} {
		r := execute(t, m.environment, strings.NewReader(""), args...)
		require.NotEqual(t, exitOK, r.code, args)
		require.NotEmpty(t, r.err)
		_, _ = io.WriteString(m.by(strings.Join(args[:2], " ")), r.out+r.err)
	}
	for name, args := range map[string][]string{
		"api":    {"api", "--database-url", u + "127.0.0.1:1/x"},
		"ingest": {"ingest", "--database-url", u + "127.0.0.1:1/x", "--nats-url", "nats://u:" + nats + "@127.0.0.1:1"},
	} {
		_, ops, p := m.start(name, args...)
		log := m.by("log of the " + name)
		require.Eventually(t, func() bool { return strings.Contains(log.String(), `"level":"warn"`) }, bearable, 20*time.Millisecond)
		m.look(name, ops)
		_, err := p.Stop(bearable)
		require.NoError(t, err)
	}
	m.requireSilence()
}
