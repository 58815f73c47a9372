package dbtest

import (
	"context"
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
	address = proctest.Address(t)
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
	programs, err := DebianPrograms("pgbouncer", debian.PgBouncer)
	if err != nil {
		return "", err
	}
	return programs[0], nil
})

// DebianPrograms returns the paths of the programs of a private copy of a package of Debian, which it makes in a
// directory of a name unless it is there.
func DebianPrograms(name string, pkg debian.Package) ([]string, error) {
	dir, err := postgres.Dir(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	//nolint:gosec // Another user runs the program; it is not secret.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("making a private copy of %s: %w", name, err)
	}
	unlock, err := filelock.Lock(ctx, dir+".lock", func() {})
	if err != nil {
		return nil, err
	}
	defer unlock()
	if len(pkg.Programs(dir)) == 0 {
		if err := pkg.Copy(ctx, dir, &command.Progress{W: os.Stderr}, nil); err != nil {
			return nil, err
		}
	}
	programs := pkg.Programs(dir)
	if len(programs) == 0 {
		return nil, fmt.Errorf("the private copy of Debian's package has no %s: %w", name, os.ErrNotExist)
	}
	return programs, nil
}
