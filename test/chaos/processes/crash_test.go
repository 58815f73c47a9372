package processes

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/postgres"
	"roomsensor/test/dbtest"
	"roomsensor/test/proctest"
)

// TestCrash shows that a crash kills the server and that what was committed survives it.
func TestCrash(t *testing.T) {
	t.Parallel()
	options := postgres.Options{Settings: dbtest.Settings(), Progress: t.Output()}
	server, remove, err := dbtest.StartTemporary(t.Context(), options)
	require.NoError(t, err)
	defer func() { require.NoError(t, remove()) }()
	options.DataDir = server.DataDir
	if pid, _, err := postgres.Processes(server.DataDir); err == nil && pid != 0 {
		require.NotEmpty(t, proctest.Children(pid))
	}
	rows := 0
	for _, alone := range []bool{false, true} {
		server, err := postgres.Start(t.Context(), options)
		require.NoError(t, err)
		conn, err := pgx.Connect(t.Context(), server.URL)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS kept (n int); INSERT INTO kept VALUES (1)")
		require.NoError(t, err)
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM kept").Scan(&rows))

		require.NoError(t, crash(t.Context(), server.DataDir, alone))
		require.Eventually(t, func() bool { return crash(t.Context(), server.DataDir, alone) != nil }, patience,
			10*time.Millisecond)
		require.ErrorIs(t, crash(t.Context(), server.DataDir, alone), postgres.ErrNotRunning)
		require.Eventually(t, func() bool { return conn.Ping(t.Context()) != nil }, patience, 10*time.Millisecond,
			"a backend ends by itself soon after the postmaster")
		_ = conn.Close(t.Context()) // The server is gone.
	}
	require.Equal(t, 2, rows, "the first row survived the first crash")
	require.ErrorIs(t, crash(t.Context(), t.TempDir(), false), postgres.ErrNotRunning)
}
