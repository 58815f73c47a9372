package dbtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/command"
	"roomsensor/internal/dev/postgres"
	"roomsensor/schema"
	"roomsensor/test/conformance"
	"roomsensor/test/proctest"
)

// serverTimeout limits a step that takes seconds on an idle machine.
const serverTimeout = 5 * time.Minute

// Primary is a server of its own, with a migrated database, that standbys can follow.
type Primary struct {
	DB

	t        testing.TB
	dir      string // with the directories of all data
	programs string
	account  *command.Account
	standbys int
}

// Standby is a streaming standby of a Primary.
type Standby struct {
	DB

	primary *Primary
	data    string
}

// NewPrimary starts a server that is removed when the test ends. The test is skipped on a machine where PostgreSQL runs
// in a container, whose programs and files it cannot reach.
func NewPrimary(t testing.TB) *Primary {
	t.Helper()
	conformance.NeedsMachine(t, "PostgreSQL outside of a container")
	ctx := t.Context()
	server, remove, err := StartTemporary(ctx, postgres.Options{Settings: Settings(), Progress: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, remove()) })
	if _, container, err := postgres.Processes(server.DataDir); err != nil || container != "" {
		require.NoError(t, err)
		t.Skip("needs PostgreSQL outside of a container")
	}
	require.NoError(t, schema.Up(ctx, server.URL, schema.Layout{}))
	require.NoError(t, schema.EnsureRoles(ctx, server.URL, roles))
	p := &Primary{DB: DB{URL: server.URL}, t: t, dir: server.DataDir}
	p.account, err = command.AccountFor(filepath.Join(p.dir, "pgdata"))
	require.NoError(t, err)
	conn, err := pgx.Connect(ctx, p.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(ctx)) }()
	err = conn.QueryRow(ctx, "SELECT setting FROM pg_config WHERE name = 'BINDIR'").Scan(&p.programs)
	require.NoError(t, err)
	return p
}

// run runs a program of PostgreSQL.
func (p *Primary) run(program string, args ...string) error {
	_, err := command.Command{
		Step: "running " + program, Argv: append([]string{filepath.Join(p.programs, program)}, args...), Dir: "/",
		As: p.account, Limit: serverTimeout,
	}.Run(context.Background(), &command.Progress{W: p.t.Output()})
	return err
}

// NewStandby starts a standby, with lines of its configuration.
func (p *Primary) NewStandby(settings ...string) *Standby {
	p.t.Helper()
	return p.standby(p.URL, settings)
}

// NewStandby starts a standby of a standby that was promoted.
func (s *Standby) NewStandby(settings ...string) *Standby {
	s.primary.t.Helper()
	return s.primary.standby(s.URL, settings)
}

func (p *Primary) standby(primary string, settings []string) *Standby {
	p.t.Helper()
	p.standbys++
	s := &Standby{primary: p, data: filepath.Join(p.dir, fmt.Sprint("standby-", p.standbys))}
	require.NoError(p.t, os.Mkdir(s.data, 0o700))
	require.NoError(p.t, p.account.Own(s.data))
	require.NoError(p.t, p.run("pg_basebackup", "--dbname="+primary, "--pgdata="+s.data, "--write-recovery-conf",
		"--checkpoint=fast", "--no-sync"))
	address := proctest.Address(p.t)
	_, port, _ := strings.Cut(address, ":")
	u, err := url.Parse(p.URL)
	require.NoError(p.t, err)
	u.Host = address
	s.URL = u.String()
	file, err := os.OpenFile(filepath.Join(s.data, "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(p.t, err)
	_, err = file.WriteString(strings.Join(append([]string{"", "port = " + port}, settings...), "\n") + "\n")
	require.NoError(p.t, err)
	require.NoError(p.t, file.Close())
	s.Start()
	p.t.Cleanup(func() { _ = s.Kill() }) // It may be stopped already.
	return s
}

// Start starts the server and waits until it answers.
func (s *Standby) Start() {
	s.primary.t.Helper()
	log := filepath.Join(s.data, "server.log")
	if err := s.primary.run("pg_ctl", "start", "--pgdata="+s.data, "--log="+log, "--wait",
		"--timeout="+fmt.Sprint(int(serverTimeout.Seconds())), "--silent"); err != nil {
		text, _ := os.ReadFile(log) //nolint:gosec // A file of this package, which may be missing.
		s.primary.t.Fatalf("starting a standby: %v\n%s", err, text)
	}
}

// Kill ends the server as a crash does.
func (s *Standby) Kill() error {
	return s.primary.run("pg_ctl", "stop", "--pgdata="+s.data, "--mode=immediate", "--silent")
}

// Set changes a setting, given as in the configuration file.
func (s *Standby) Set(setting string) {
	t := s.primary.t
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), "ALTER SYSTEM SET "+setting)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "SELECT pg_reload_conf()")
	require.NoError(t, err)
}

// Promote makes the standby a primary.
func (s *Standby) Promote() {
	s.primary.t.Helper()
	require.NoError(s.primary.t, s.primary.run("pg_ctl", "promote", "--pgdata="+s.data, "--wait", "--silent"))
}
