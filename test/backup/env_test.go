package backup_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/internal/dev/command"
	"roomsensor/internal/dev/postgres"
	"roomsensor/test/dbtest"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

// programsDir has the programs under test.
var programsDir string

func TestMain(m *testing.M) {
	var err error
	if programsDir, err = os.MkdirTemp("", "roomsensor-backup-test-"); err != nil {
		panic(err)
	}
	dbtest.Verify(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(programsDir)
		os.Exit(code)
	}))
}

// built compiles the programs once. The user of PostgreSQL runs commands of roomsensor.
var built = sync.OnceValues(func() (harness.Programs, error) {
	if err := os.Chmod(programsDir, 0o755); err != nil {
		return harness.Programs{}, fmt.Errorf("opening the directory of the programs: %w", err)
	}
	return harness.Build(context.Background(), programsDir)
})

const (
	// stepTimeout limits a step that takes seconds on an idle machine.
	stepTimeout = 5 * time.Minute
	// lastChange limits the time between the last change and a moment: units send all the time.
	lastChange = 10 * time.Second
	// pollInterval is how often a step checks whether it is over.
	pollInterval = 100 * time.Millisecond
	// password is that of the owner of the tables and of the role of the API.
	password = "drill"
)

// env is a service on servers of its own, and the variables of the page.
type env struct {
	*harness.Env
	t         *testing.T
	page      []string
	programs  harness.Programs
	account   *command.Account // of PostgreSQL
	variables map[string]string
	service   *harness.Service
	fleet     *harness.Fleet
	nats      *proctest.NATS
	processes map[string]*harness.Process
}

// newEnv starts the servers, and no process yet.
func newEnv(t *testing.T) *env {
	t.Helper()
	base, err := harness.NewEnv("", t.Output())
	require.NoError(t, err)
	e := &env{Env: base, t: t, page: readPage(t), processes: map[string]*harness.Process{}}
	t.Cleanup(func() { require.NoError(t, base.Close(context.Background(), false)) })
	e.programs, err = built()
	require.NoError(t, err)
	e.startDatabase()
	e.startQueue()
	return e
}

// startDatabase starts a server whose directory has the backups too.
func (e *env) startDatabase() {
	server, remove, err := dbtest.StartTemporary(e.t.Context(), postgres.Options{
		Settings: map[string]string{"fsync": "off", "full_page_writes": "off"}, Progress: e.t.Output(),
	})
	require.NoError(e.t, err)
	e.OnClose(func(context.Context) error { return remove() })
	if _, container, err := postgres.Processes(server.DataDir); err != nil || container != "" {
		require.NoError(e.t, err)
		e.t.Skip("needs PostgreSQL on this machine: the commands of the page do not reach the files of a container")
	}
	data := filepath.Join(server.DataDir, "pgdata")
	e.account, err = command.AccountFor(data)
	require.NoError(e.t, err)
	e.variables = map[string]string{
		"DATABASE_URL": server.URL, "ADMIN_URL": withPath(server.URL, "postgres"), "PGDATA": data,
		"PGLOG":  filepath.Join(server.DataDir, "server.log"),
		"BACKUP": filepath.Join(server.DataDir, "backup"), "ARCHIVE": filepath.Join(server.DataDir, "archive"),
		"OWNER": "roomsensor",
	}
	for _, dir := range []string{e.variables["BACKUP"], e.variables["ARCHIVE"]} {
		require.NoError(e.t, os.Mkdir(dir, 0o700))
		require.NoError(e.t, e.account.Own(dir))
	}
	// pg_basebackup writes the directory of PostgreSQL's user, and mv needs that of the data.
	require.NoError(e.t, e.account.Own(server.DataDir))
	var programs string
	e.value(&programs, "SELECT setting FROM pg_config WHERE name = 'BINDIR'")
	e.variables["PATH"] = strings.Join([]string{programs, filepath.Dir(e.programs.Roomsensor), command.Path()}, ":")
}

func withPath(address, database string) string {
	u, _ := url.Parse(address) // The server's own URL.
	u.Path = "/" + database
	return u.String()
}

func (e *env) startQueue() {
	log, err := e.LogFile("nats-server")
	require.NoError(e.t, err)
	store := filepath.Join(e.Dir, "nats")
	require.NoError(e.t, os.Mkdir(store, 0o755))
	e.nats, err = proctest.StartNATS(e.t.Context(), e.programs.NATSServer, store, log)
	require.NoError(e.t, err)
	e.OnClose(func(context.Context) error { e.nats.Kill(); return nil })
	conn, js, err := harness.Connect(e.nats.URL)
	require.NoError(e.t, err)
	e.OnClose(func(context.Context) error { conn.Close(); return nil })
	e.variables["NATS_URL"], e.variables["NATS_STORE"] = e.nats.URL, store
	e.service = &harness.Service{
		Env: e.Env, Program: e.programs.Roomsensor, QueueURL: e.nats.URL, JS: js,
		DatabaseURL: func() string { return e.as(e.variables["OWNER"]) },
	}
}

// as returns the URL of the database for a role.
func (e *env) as(role string) string {
	u, _ := url.Parse(e.variables["DATABASE_URL"]) // The server's own URL.
	u.User = url.UserPassword(role, password)
	return u.String()
}

// newFleet creates the fleet, the owner of the tables, who is not a superuser, and the role of the API.
func (e *env) newFleet() {
	e.shell(e.account, `psql "$DATABASE_URL" --set=ON_ERROR_STOP=1 --set=password="$PASSWORD" <<END
CREATE ROLE $OWNER LOGIN CREATEROLE PASSWORD :'password';
ALTER DATABASE roomsensor OWNER TO $OWNER;
END`, "PASSWORD="+password)
	e.migrate()
	var err error
	e.fleet, err = e.service.CreateFleet(e.t.Context(), &harness.Options{Units: 24, Teams: 2})
	require.NoError(e.t, err)
}

// migrate runs migrations as the owner of the tables.
func (e *env) migrate() {
	e.t.Helper()
	e.shell(nil, `DATABASE_URL="$OWNER_URL" roomsensor migrate up`,
		"OWNER_URL="+e.as(e.variables["OWNER"]), "DATABASE_ROLES=roomsensor", "DATABASE_API_PASSWORD="+password)
}

// step prints the name of a step and runs a block of the page as a user.
func (e *env) step(as *command.Account, name string, block int) string {
	e.t.Helper()
	return e.run(as, name, e.page[block])
}

func (e *env) run(as *command.Account, name, commands string) string {
	e.t.Helper()
	e.Logf("%s:%s", name, strings.ReplaceAll(strings.TrimRight(commands, "\n"), "\n", "\n    $ "))
	return e.shell(as, commands)
}

// shell runs commands and returns their output.
func (e *env) shell(as *command.Account, commands string, more ...string) string {
	e.t.Helper()
	c := command.Command{
		Step: "running " + commands, Argv: []string{"/bin/bash", "-euo", "pipefail", "-c", commands}, Dir: "/", Env: more,
		As: as, Limit: stepTimeout,
	}
	for name, value := range e.variables {
		c.Env = append(c.Env, name+"="+value)
	}
	out, err := c.Run(context.WithoutCancel(e.t.Context()), &command.Progress{}) // OnClose stops a server with it.
	if err != nil {
		log, _ := os.ReadFile(e.variables["PGLOG"]) // It may be missing.
		e.Logf("the log of PostgreSQL: %s", log)
	}
	require.NoError(e.t, err)
	return out
}

// start starts a process of roomsensor on free addresses.
func (e *env) start(name string, more ...string) {
	e.t.Helper()
	role := e.variables["OWNER"]
	if name == "api" {
		role = "roomsensor_api"
	}
	process, err := e.NewProcess(name, e.programs.Roomsensor, []string{
		"DATABASE_URL=" + e.as(role), "NATS_URL=" + e.nats.URL, harness.UnlimitedRequests, harness.UnlimitedBytes,
	}, more...)
	require.NoError(e.t, err)
	require.NoError(e.t, process.Start(e.t.Context()))
	e.processes[name] = process
	if name == "api" {
		e.service.API = process.Address
	}
}

func (e *env) startReceiver() {
	e.start("receiver", "ingest", "--no-worker")
	e.service.Receiver = e.processes["receiver"].Address
}

func (e *env) startAPIAndWorker() {
	e.start("api", "api")
	e.start("worker", "ingest", "--no-receiver")
}

func (e *env) stop(names ...string) {
	e.t.Helper()
	for _, name := range names {
		_, err := e.processes[name].Stop(stepTimeout)
		require.NoError(e.t, err, name)
	}
}

// value reads one value from the database.
func (e *env) value(result any, sql string, args ...any) {
	e.t.Helper()
	require.NoError(e.t, e.query(result, sql, args...))
}

func (e *env) query(result any, sql string, args ...any) error {
	s := harness.Service{DatabaseURL: func() string { return e.variables["DATABASE_URL"] }}
	return s.Query(e.t.Context(), func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, sql, args...).Scan(result)
	})
}

// readings returns the number of stored readings.
func (e *env) readings() (n int) {
	e.t.Helper()
	e.value(&n, "SELECT count(*) FROM readings")
	return n
}

// awaitMore waits until stepReadings more readings are stored.
func (e *env) awaitMore() {
	e.t.Helper()
	want := e.readings() + stepReadings
	require.Eventually(e.t, func() bool { return e.readings() >= want }, stepTimeout, pollInterval)
}
