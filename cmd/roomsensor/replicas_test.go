package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/openapitest"
	"roomsensor/internal/procs"
)

// replica is the API in a process of its own.
type replica struct {
	*procs.Process
	t       *testing.T
	log     *output
	baseURL string
	opsURL  string
	command procs.Command
	client  *http.Client
}

// startReplica runs the API on a database until the test ends.
func startReplica(t *testing.T, databaseURL string) *replica {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	api, err := procs.FreeAddress()
	require.NoError(t, err)
	ops, err := procs.FreeAddress()
	require.NoError(t, err)
	r := &replica{t: t, log: &output{}, baseURL: "http://" + api + "/v1", opsURL: ops}
	r.command = procs.Command{Path: self, Args: []string{"api"}, Log: r.log, Env: []string{
		asProgram + "=1", "DATABASE_URL=" + databaseURL, "API_ADDR=" + api, "OPS_ADDR=" + ops,
	}}
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	r.client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	r.start()
	t.Cleanup(func() { r.Kill() })
	return r
}

// start starts it, again after it was killed, on the same addresses.
func (r *replica) start() {
	r.t.Helper()
	var err error
	r.Process, err = procs.Start(r.command)
	require.NoError(r.t, err)
	ctx, cancel := context.WithTimeout(r.t.Context(), bearable)
	defer cancel()
	require.NoError(r.t, r.AwaitReady(ctx, r.opsURL), r.log.String())
}

// answer is what a replica said; err is why it said nothing.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

// ask sends a request with a key, and holds the answer to the OpenAPI document. Headers are lines such as
// Accept-Encoding: gzip.
func (r *replica) ask(method, path, key, body string, headers ...string) answer {
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.baseURL+path, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	request.Header.Set("Authorization", "Bearer "+key)
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Set(name, value)
	}
	got, err := (&http.Client{Transport: openapitest.Transport(r.client.Transport)}).Do(request)
	if err != nil {
		return answer{err: err}
	}
	text, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, got.Header, string(text), errors.Join(err, got.Body.Close())}
}

func (r *replica) get(path, key string) answer { return r.ask(http.MethodGet, path, key, "") }

// fleet is two replicas over one database with a team and a device.
type fleet struct {
	*operator
	replicas [2]*replica
	sql      *pgxpool.Pool
	team     string
	device   string
	key      string // of scope read_write
	keyID    string
}

func launch(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{operator: newOperator(t)}
	f.team = f.operator.team()
	f.device = f.operator.device(f.team, "dev:1")
	f.keyID, f.key = f.newKey()
	url := f.environment["DATABASE_URL"]
	var err error
	f.sql, err = pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(f.sql.Close)
	for i := range f.replicas {
		f.replicas[i] = startReplica(t, url)
	}
	return f
}

func (f *fleet) newKey(more ...string) (id, text string) {
	f.t.Helper()
	key := f.do(append([]string{"key", "create", "--team", f.team, "--scope", "read_write"}, more...)...)
	return key["key_id"].(string), key["key"].(string)
}

func (f *fleet) exec(sql string, args ...any) {
	f.t.Helper()
	_, err := f.sql.Exec(f.t.Context(), sql, args...)
	require.NoError(f.t, err)
}

// one is the only value of a query.
func one[T any](f *fleet, sql string, args ...any) T {
	f.t.Helper()
	var value T
	require.NoError(f.t, f.sql.QueryRow(f.t.Context(), sql, args...).Scan(&value))
	return value
}

// pollEvery is how often a test looks whether something has happened.
const pollEvery = 20 * time.Millisecond
