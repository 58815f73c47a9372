package e2e_test

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"roomsensor/schema"
	"roomsensor/test/dbtest"
)

// fromFile moves a setting of a process that was not started yet to a file, and returns a function that writes another
// user and password into it.
func (e *env) fromFile(s *server, setting string) (write func(user, password string)) {
	e.t.Helper()
	i := slices.IndexFunc(s.command.Env, func(line string) bool { return strings.HasPrefix(line, setting+"=") })
	u, err := url.Parse(strings.TrimPrefix(s.command.Env[i], setting+"="))
	require.NoError(e.t, err)
	path := filepath.Join(e.t.TempDir(), "url")
	s.command.Env[i] = setting + "_FILE=" + path
	return func(user, password string) {
		u.User = url.UserPassword(user, password)
		require.NoError(e.t, os.WriteFile(path+".new", []byte(u.String()+"\n"), 0o600))
		require.NoError(e.t, os.Rename(path+".new", path))
	}
}

// TestRotatePasswords changes the passwords of the database and of NATS as docs/operate/security.md describes, while
// clients read and upload. No read fails and no process restarts. Uploads are refused while the connection to NATS is made
// again, and none is lost. It takes 8 s to start the processes.
func TestRotatePasswords(t *testing.T) {
	t.Parallel()
	e := &streamEnv{env: newEnv(t)}
	role, queue := "rotate_"+uuid.NewString()[:8], e.startQueueWithPassword("first")
	owner := schemaRole(t, e.settings["DATABASE_URL"], schema.RoleAPI)
	e.exec("CREATE ROLE " + role + " LOGIN PASSWORD 'first' IN ROLE " + owner)
	e.newDevice("dev:1")
	api, ingest := e.prepare("api"), e.prepare("ingest")
	writeDatabase, writeQueue := e.fromFile(api, "DATABASE_URL"), e.fromFile(ingest, "NATS_URL")
	writeDatabase(role, "first")
	writeQueue("user", "first")
	e.restart(api)
	e.restart(ingest)
	e.receiver = ingest

	e.requireReads(api, 1)
	writeDatabase(role, "second")
	e.requireReads(api, 4)
	e.exec("ALTER ROLE " + role + " PASSWORD 'second'")
	e.requireReads(api, 8)
	e.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", role)
	require.Eventually(t, func() bool { return e.send(api, http.MethodGet, "/v1/devices", e.key, "").status == 200 },
		patience, pollEvery, "with new connections")

	require.Equal(t, 202, e.upload(`{"hardware_id":"dev:1","readings":[`+reading("10:00:00", `"co2_ppm":500`)+`]}`).status)
	writeQueue("user", "second")
	queue("second")
	require.Eventually(t, func() bool {
		r := e.upload(`{"hardware_id":"dev:1","readings":[` + reading("10:05:00", `"co2_ppm":501`) + `]}`)
		require.Contains(t, []int{202, 503}, r.status, r.body)
		return r.status == 202
	}, patience, pollEvery, "with the new password of NATS")
	require.Eventually(t, func() bool { return value[int](e.env, "SELECT count(*) FROM readings") == 2 }, patience, pollEvery)
	e.stop(api)
	e.stop(ingest)
	e.exec("DROP ROLE " + role)
}

// schemaRole returns the name of the role of a process.
func schemaRole(t *testing.T, databaseURL string, role schema.Role) string {
	t.Helper()
	u, err := url.Parse((&dbtest.DB{URL: databaseURL}).As(t, role))
	require.NoError(t, err)
	return u.User.Username()
}

// startQueueWithPassword starts a NATS server whose only user has a password, and returns a function that changes it.
func (e *streamEnv) startQueueWithPassword(password string) (change func(string)) {
	options := natsserver.Options{
		Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, Username: "user", Password: password, JetStream: true,
		StoreDir: e.t.TempDir(), NoSigs: true,
	}
	first := options
	s, err := natsserver.NewServer(&first)
	require.NoError(e.t, err)
	s.Start()
	e.t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	require.True(e.t, s.ReadyForConnections(patience))
	options.Port = s.Addr().(*net.TCPAddr).Port
	e.settings["NATS_URL"] = "nats://user:" + password + "@127.0.0.1:" + strconv.Itoa(options.Port)
	return func(password string) {
		next := options
		next.Password = password
		require.NoError(e.t, s.ReloadOptions(&next))
	}
}

// requireReads reads with some clients at the same time.
func (e *streamEnv) requireReads(api *server, clients int) {
	e.t.Helper()
	const each = 10 // The key has 600 requests.
	var failed sync.Map
	var reading sync.WaitGroup
	for range clients {
		reading.Go(func() {
			for range each {
				if r := e.send(api, http.MethodGet, "/v1/devices", e.key, ""); r.status != http.StatusOK {
					failed.Store(r.status, r.body)
				}
			}
		})
	}
	reading.Wait()
	failed.Range(func(status, body any) bool {
		require.Fail(e.t, "a read failed", "%v %v\n%s", status, body, api.log)
		return false
	})
}
