package dbtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/command"
	"roomsensor/internal/dev/postgres"
)

func ping(url string) error {
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		return err
	}
	return conn.Close(context.Background())
}

func TestStartTemporary(t *testing.T) {
	t.Parallel()
	s, remove, err := StartTemporary(t.Context(), postgres.Options{Settings: Settings(), Progress: t.Output()})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, remove())
		require.NoDirExists(t, s.DataDir)
		require.Error(t, ping(s.URL))
	}()

	t.Run("with a URL it starts and removes nothing", func(t *testing.T) {
		given, removeNothing, err := StartTemporary(t.Context(), postgres.Options{URL: s.URL})
		require.NoError(t, err)
		require.NoError(t, removeNothing())
		require.NoError(t, ping(given.URL))
	})
	t.Run("it removes directories whose owner is gone, and no others", func(t *testing.T) {
		parent := filepath.Join(s.DataDir, "parent")
		require.NoError(t, os.Mkdir(parent, 0o755))
		abandoned, release, err := temporaryDir(t.Context(), parent, &command.Progress{})
		require.NoError(t, err)
		left, err := postgres.Start(t.Context(),
			postgres.Options{DataDir: abandoned, Settings: Settings(), Progress: t.Output()})
		require.NoError(t, err)
		release() // As the kernel does when the owner is killed.

		owned, release, err := temporaryDir(t.Context(), parent, &command.Progress{})
		require.NoError(t, err)
		defer release()
		require.NoDirExists(t, abandoned)
		require.Error(t, ping(left.URL))
		removeAbandoned(t.Context(), parent, &command.Progress{})
		require.DirExists(t, owned)
		require.NoError(t, os.RemoveAll(parent))
	})
}
