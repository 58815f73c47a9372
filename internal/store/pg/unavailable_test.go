package pg_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/store/pg"
	"roomsensor/schema"
	"roomsensor/test/dbtest"
)

// TestRefusal checks what a real server answers when it refuses a connection.
func TestRefusal(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t)
	refusal := func(change func(*url.URL), databaseURL string) string {
		u, err := url.Parse(databaseURL)
		require.NoError(t, err)
		change(u)
		s, err := pg.Open(t.Context(), u.String(), pg.API)
		require.NoError(t, err)
		defer s.Close()
		err = s.Ping(t.Context())
		require.Error(t, err)
		return pg.Refusal(err)
	}
	require.Regexp(t, `^refuses the role \(SQLSTATE 28(000|P01)\): check the user and the password in --database-url`,
		refusal(func(u *url.URL) { u.User = url.UserPassword("nobody", "secret") }, db.URL))
	require.Equal(t, "does not exist (SQLSTATE 3D000): check the name in --database-url (DATABASE_URL)",
		refusal(func(u *url.URL) { u.Path = "/no_such_database" }, db.URL))
	require.Empty(t, refusal(func(*url.URL) {}, "postgres://127.0.0.1:1/x"), "nothing answers")

	sql, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	_, err = sql.Exec(t.Context(),
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I CONNECTION LIMIT 0', current_database()); END $$`)
	require.NoError(t, err)
	require.NoError(t, sql.Close(t.Context()))
	require.Equal(t, "has no free connection (SQLSTATE 53300): end sessions that are not of the service, or raise max_connections",
		refusal(func(*url.URL) {}, db.As(t, schema.RoleAPI)))
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a:5432 or b:5433", pg.Addresses("postgres://user:secret@a:5432,b:5433/x"))
	require.Equal(t, "[::1]:5432", pg.Addresses("postgres://user:secret@[::1]:5432/x?sslmode=prefer"))
}

func TestConnectTimeout(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]time.Duration{"": 3 * time.Second, "?connect_timeout=20": 20 * time.Second} {
		s, err := pg.Open(t.Context(), "postgres://127.0.0.1:1/x"+query, pg.API)
		require.NoError(t, err)
		require.Equal(t, want, s.Pool.Config().ConnConfig.ConnectTimeout, query)
		s.Close()
	}
}
