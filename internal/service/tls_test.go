package service_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/store"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
	"roomsensor/test/tlstest"
)

// startWithTLS starts a PostgreSQL server that offers TLS, and returns its URL. The test is skipped if the server does
// not store its data in a directory of this machine.
func startWithTLS(t *testing.T, certificates tlstest.Certificates) *url.URL {
	t.Helper()
	conformance.NeedsMachine(t, "an installation of PostgreSQL")
	server, remove, err := dbtest.StartTemporary(t.Context(), postgres.Options{Settings: dbtest.Settings(), Progress: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, remove()) })
	conn, err := pgx.Connect(t.Context(), server.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	var dir string
	require.NoError(t, conn.QueryRow(t.Context(), "SHOW data_directory").Scan(&dir))
	data, err := os.Stat(dir)
	if err != nil {
		t.Skip("needs an installation of PostgreSQL, and there is only an image")
	}
	for from, to := range map[string]string{certificates.Server: "server.crt", certificates.Key: "server.key"} {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		to = filepath.Join(dir, to)
		require.NoError(t, os.WriteFile(to, text, 0o600)) //nolint:gosec // In the data of the test's own server.
		owner := data.Sys().(*syscall.Stat_t)
		require.NoError(t, os.Chown(to, int(owner.Uid), int(owner.Gid)))
	}
	for _, sql := range []string{"ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()"} {
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	return u
}

// TestRotateCA checks that new connections use the CAs that their file has then. It takes 3 s to start a server of its
// own.
func TestRotateCA(t *testing.T) {
	t.Parallel()
	certificates := tlstest.New(t, "localhost")
	u := startWithTLS(t, certificates)
	path := filepath.Join(t.TempDir(), "ca.pem")
	replace := func(ca string) {
		text, err := os.ReadFile(ca)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, text, 0o600)) //nolint:gosec // In a directory of the test.
	}
	u.Host = "localhost:" + u.Port()
	u.RawQuery = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {path}}.Encode()
	replace(tlstest.New(t, "localhost").CA)
	s, err := store.Open(t.Context(), u.String(), store.API)
	require.NoError(t, err)
	defer s.Close()
	require.ErrorContains(t, s.Ping(t.Context()), "unknown authority")
	replace(certificates.CA)
	require.NoError(t, s.Ping(t.Context()))
}

// TestDatabaseTLS checks that a process connects to a server whose certificate it can verify, and that it refuses one
// of another CA or for another name and reports what to do.
func TestDatabaseTLS(t *testing.T) {
	t.Parallel()
	certificates := tlstest.New(t, "localhost")
	server := startWithTLS(t, certificates)
	for _, test := range []struct{ host, ca, want string }{
		{"localhost", certificates.CA, "is not migrated"},
		{"localhost", tlstest.New(t, "localhost").CA, "check that sslrootcert"},
		{"127.0.0.1", certificates.CA, "the certificate names the host in the URL"},
	} {
		u := *server
		u.Host = test.host + ":" + server.Port()
		u.RawQuery = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {test.ca}}.Encode()
		r := startAPI(t, apiConfig(u.String()))
		awaitReadiness(t, r.address("ops"), 503, test.want)
		require.NoError(t, r.end())
		if strings.HasPrefix(test.want, "check") {
			require.Contains(t, r.log.String(), "certificate signed by unknown authority")
		}
	}
}
