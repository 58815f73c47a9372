package pg_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
	"roomsensor/internal/store/pg"
	"roomsensor/test/dbtest"
)

// TestRotatePassword checks that no connection fails while the password in the file of the URL and that of the role
// change one after the other, and that a file that cannot be used changes nothing.
func TestRotatePassword(t *testing.T) {
	t.Parallel()
	admin, err := pgx.Connect(t.Context(), dbtest.Empty(t).URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, admin.Close(context.WithoutCancel(t.Context()))) }()
	role := "rotate_" + uuid.NewString()[:8]
	execute := func(sql string) {
		_, err := admin.Exec(context.WithoutCancel(t.Context()), sql)
		require.NoError(t, err)
	}
	execute("CREATE ROLE " + role + " LOGIN PASSWORD 'first'")
	defer execute("DROP ROLE " + role)
	u, err := url.Parse(admin.Config().ConnString())
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "url")
	write := func(password string) {
		u.User = url.UserPassword(role, password)
		require.NoError(t, os.WriteFile(path, []byte(u.String()+"\n"), 0o600))
	}
	write("first")

	db, err := pg.Open(t.Context(), config.InFile+path, pg.Notify)
	require.NoError(t, err)
	defer db.Close()
	connects := func() error { // as a connection that was not there before
		db.Pool.Reset()
		return db.Pool.Ping(t.Context())
	}
	require.NoError(t, connects())
	write("second")
	require.NoError(t, connects(), "with the file only")
	execute("ALTER ROLE " + role + " PASSWORD 'second'")
	require.NoError(t, connects())
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, connects(), "with an empty file")
	require.NoError(t, os.Remove(path))
	require.NoError(t, connects(), "without the file")
	execute("ALTER ROLE " + role + " PASSWORD 'third'")
	require.ErrorContains(t, connects(), "28P01")
	write("third")
	require.NoError(t, connects())
}
