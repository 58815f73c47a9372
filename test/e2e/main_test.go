package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/schema"
	"roomsensor/test/dbtest"
	"roomsensor/test/openapitest"
	"roomsensor/test/proctest"
)

// program is the path of the binary under test.
var program string

// minParallel is how many tests run at once at least. Most of the time they wait for processes.
const minParallel = 4

// TestMain builds the binary once, without the race detector, for all tests. The flag -parallel wins over minParallel.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given && runtime.GOMAXPROCS(0) < minParallel {
		if err := flag.Set("test.parallel", strconv.Itoa(minParallel)); err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "roomsensor-e2e-")
	if err == nil {
		program, err = proctest.Build(context.Background(), dir, proctest.Roomsensor)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "building the program:", err)
		os.Exit(1)
	}
	dbtest.Verify(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

const (
	// patience limits every wait of a test.
	patience = proctest.Patience
	// pollEvery is the interval at which tests check whether something has happened.
	pollEvery = 20 * time.Millisecond
)

// env is a service under test: a database with a team, and the processes that the test starts.
type env struct {
	t        *testing.T
	settings map[string]string // environment of processes and commands
	pooler   string            // address of PgBouncer, through which the processes connect; empty for none
	sql      *pgxpool.Pool
	client   *http.Client // checks responses against the OpenAPI document

	team, keyID, key, ingestKey string    // key has scope read_write
	apis                        []*server // the first one serves get and object
	receiver                    *server
}

func newEnv(t *testing.T) *env {
	t.Helper()
	return newEnvOn(t, dbtest.New(t).URL)
}

// newEnvOn returns a service under test on a migrated database.
func newEnvOn(t *testing.T, databaseURL string) *env {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}
	e := &env{
		t: t, settings: map[string]string{"DATABASE_URL": databaseURL},
		client: &http.Client{Transport: openapitest.Transport(transport)},
	}
	var err error
	e.sql, err = pgxpool.New(t.Context(), e.settings["DATABASE_URL"])
	require.NoError(t, err)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		e.sql.Close()
	})
	return e.newTeam(t)
}

// newTeam returns the same service with a new team, for a test of its own.
func (e *env) newTeam(t *testing.T) *env {
	t.Helper()
	c := *e
	c.t = t
	c.team = c.field("id", "team", "create", "--name", "Team", "--allow-same-name")
	c.keyID, c.key = c.newKey()
	c.ingestKey = c.field("key", "ingest-key", "create", "--team", c.team)
	return &c
}

func (e *env) newKey() (id, key string) {
	e.t.Helper()
	created := e.command("key", "create", "--team", e.team, "--scope", "read_write")
	return created["key_id"].(string), created["key"].(string)
}

func (e *env) newDevice(unit string, more ...string) string {
	e.t.Helper()
	return e.field("device_id", append([]string{"device", "create", "--team", e.team, "--hardware-id", unit}, more...)...)
}

func (e *env) exec(sql string, args ...any) {
	e.t.Helper()
	_, err := e.sql.Exec(e.t.Context(), sql, args...)
	require.NoError(e.t, err)
}

// value returns the only value of a query.
func value[T any](e *env, sql string, args ...any) (v T) {
	e.t.Helper()
	require.NoError(e.t, e.sql.QueryRow(e.t.Context(), sql, args...).Scan(&v))
	return v
}

// result is the outcome of a command.
type result struct {
	code        int
	out, stderr string
}

// run runs a command of the program.
func (e *env) run(stdin io.Reader, args ...string) result {
	e.t.Helper()
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(e.t.Context(), program, args...)
	cmd.Env = []string{"HOME=" + e.t.TempDir(), "PGCONNECT_TIMEOUT=60"} // The machine may be busy.
	for name, value := range e.settings {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &stderr
	if err := cmd.Run(); err != nil {
		require.ErrorAs(e.t, err, new(*exec.ExitError))
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), stderr.String()}
}

// command runs a command that must succeed and print one object.
func (e *env) command(args ...string) (object map[string]any) {
	e.t.Helper()
	r := e.run(nil, args...)
	require.Zero(e.t, r.code, "%v: %s", args, r.stderr)
	require.NoError(e.t, json.Unmarshal([]byte(r.out), &object))
	return object
}

// field runs a command and returns one field of the object that it prints.
func (e *env) field(name string, args ...string) string {
	e.t.Helper()
	return e.command(args...)[name].(string)
}

// list runs a command that prints a list.
func (e *env) list(args ...string) (list []map[string]any) {
	e.t.Helper()
	for _, item := range e.command(args...)["data"].([]any) {
		list = append(list, item.(map[string]any))
	}
	return list
}

// server is a process of the program that serves: the API, a receiver or a worker.
type server struct {
	*proctest.Process
	command  proctest.Command
	log      *proctest.Output
	url, ops string // base URL and ops address
}

// start starts a process that runs until the test ends, and waits until it is ready.
func (e *env) start(args ...string) *server {
	e.t.Helper()
	s := e.prepare(args...)
	e.restart(s)
	return s
}

// prepare returns a process that is not started yet. It has addresses of its own, and the test kills it at its end. A
// receiver creates no stream, and no worker need run beside it.
func (e *env) prepare(args ...string) *server {
	e.t.Helper()
	if roleOf(args) == schema.RoleReceiver {
		e.command("stream", "confirm")
	}
	address, ops := proctest.Address(e.t), proctest.Address(e.t)
	s := &server{url: "http://" + address, ops: ops, log: &proctest.Output{}}
	s.command = proctest.Command{Path: program, Args: args, Log: s.log, Env: []string{
		"API_ADDR=" + address, "INGEST_ADDR=" + address, "DASHBOARD_ADDR=" + address, "OPS_ADDR=" + ops,
	}}
	for name, value := range e.settings {
		if name == "DATABASE_URL" {
			value = (&dbtest.DB{URL: value}).As(e.t, roleOf(args))
			if e.pooler != "" {
				value = e.throughPooler(value)
			}
		}
		s.command.Env = append(s.command.Env, name+"="+value)
	}
	e.t.Cleanup(func() {
		if s.Process != nil {
			s.Kill()
		}
	})
	return s
}

// throughPooler returns the URL of a database through PgBouncer.
func (e *env) throughPooler(databaseURL string) string {
	e.t.Helper()
	u, err := url.Parse(databaseURL)
	require.NoError(e.t, err)
	u.Host, u.RawQuery = e.pooler, "sslmode=disable"
	return u.String()
}

// roleOf returns the database role of a process. Commands use the owner of the tables.
func roleOf(args []string) schema.Role {
	switch {
	case args[0] == "api":
		return schema.RoleAPI
	case args[0] == "dashboard":
		return schema.RoleDashboard
	case slices.Contains(args, "--no-worker"):
		return schema.RoleReceiver
	}
	return schema.RoleWorker
}

// restart starts a process, again after it ended, on the same addresses, and waits until it is ready.
func (e *env) restart(s *server) {
	e.t.Helper()
	e.startUnready(s)
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	require.NoError(e.t, s.AwaitReady(ctx, s.ops), s.log)
}

// startUnready starts a process and does not wait until it is ready.
func (e *env) startUnready(s *server) {
	e.t.Helper()
	var err error
	s.Process, err = proctest.Start(s.command)
	require.NoError(e.t, err)
}

// stop sends SIGTERM to a process, which must exit with code 0.
func (e *env) stop(s *server) {
	e.t.Helper()
	_, err := s.Stop(patience)
	require.NoError(e.t, err, s.log)
}

// response is what a server answered; err is why it did not answer.
type response struct {
	status int
	header http.Header
	body   string
	err    error
}

// send sends a request to a path of a server. Headers are lines such as "Accept-Encoding: gzip".
func (e *env) send(s *server, method, path, key, body string, headers ...string) response {
	request, err := http.NewRequestWithContext(e.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		return response{err: err}
	}
	for _, line := range append([]string{"Authorization: Bearer " + key}, headers...) {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Set(name, value)
	}
	got, err := e.client.Do(request)
	if err != nil {
		return response{err: err}
	}
	text, err := io.ReadAll(got.Body)
	return response{got.StatusCode, got.Header, string(text), errors.Join(err, got.Body.Close())}
}

// upload posts an upload to the receiver.
func (e *env) upload(text string) response {
	return e.send(e.receiver, http.MethodPost, "/uploads", e.ingestKey, text)
}
