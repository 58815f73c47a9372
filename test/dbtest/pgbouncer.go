package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/command"
	"roomsensor/internal/dev/filelock"
	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/dev/postgres/debian"
	"roomsensor/test/conformance"
	"roomsensor/test/proctest"
)

// pgBouncerTimeout is for PgBouncer to start on a busy machine.
const pgBouncerTimeout = 30 * time.Second

// PgBouncer starts PgBouncer in front of the server of the tests, for the roles of processes, and returns its address.
// The settings are lines of its configuration, such as `pool_mode = session`. It stops when the test ends. The test is
// skipped on a machine that has no PgBouncer and cannot get it.
func PgBouncer(t testing.TB, settings ...string) (address string) {
	t.Helper()
	conformance.NeedsMachine(t, "PgBouncer")
	program, err := pgBouncer()
	if err != nil {
		t.Skipf("needs PgBouncer: %v", err)
	}
	config, err := pgx.ParseConfig(use(t).url)
	require.NoError(t, err)
	address, err = proctest.FreeAddress()
	require.NoError(t, err)
	_, port, _ := strings.Cut(address, ":")

	dir := t.TempDir()
	ini, users := filepath.Join(dir, "pgbouncer.ini"), filepath.Join(dir, "users.txt")
	var known strings.Builder
	for role, password := range roles.Passwords {
		fmt.Fprintf(&known, "%q %q\n", roles.Name(role), password)
	}
	require.NoError(t, os.WriteFile(users, []byte(known.String()), 0o600))
	require.NoError(t, os.WriteFile(ini, []byte(strings.Join(append([]string{
		"[databases]", fmt.Sprintf("* = host=%s port=%d", config.Host, config.Port),
		"[pgbouncer]", "listen_addr = 127.0.0.1", "listen_port = " + port, "unix_socket_dir =",
		"auth_type = scram-sha-256", "auth_file = " + users, "max_client_conn = 1000",
	}, settings...), "\n")), 0o600))
	args := []string{ini}
	if os.Geteuid() == 0 { // PgBouncer refuses to run as root.
		args = append([]string{"-u", "nobody"}, args...)
	}
	log := &proctest.Output{}
	process, err := proctest.Start(proctest.Command{Path: program, Args: args, Log: log})
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	require.Eventually(t, func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		return err == nil && conn.Close() == nil
	}, pgBouncerTimeout, 20*time.Millisecond, log)
	return address
}

// pgBouncer returns the path of the program: the installed one, else that of a private copy of Debian's package.
var pgBouncer = sync.OnceValues(func() (string, error) {
	if installed := command.Find("pgbouncer"); installed != "" {
		return installed, nil
	}
	dir, err := postgres.Dir("pgbouncer")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	//nolint:gosec // Another user runs the program; it is not secret.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("making a private copy of PgBouncer: %w", err)
	}
	unlock, err := filelock.Lock(ctx, dir+".lock", func() {})
	if err != nil {
		return "", err
	}
	defer unlock()
	if len(debian.PgBouncer.Programs(dir)) == 0 {
		if err := debian.PgBouncer.Copy(ctx, dir, &command.Progress{W: os.Stderr}, nil); err != nil {
			return "", err
		}
	}
	programs := debian.PgBouncer.Programs(dir)
	if len(programs) == 0 {
		return "", errors.New("the private copy of Debian's package has no pgbouncer")
	}
	return programs[0], nil
})
