package admin_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/admin"
	"roomsensor/internal/config"
	"roomsensor/test/dbtest"
	"roomsensor/test/proctest"
)

// Deployments migrate while the database starts: MigrateUp tries to connect several times.
func TestMigrateUpRetries(t *testing.T) {
	t.Parallel()
	line, err := proctest.NewProxy(t.Context(), dbtest.Empty(t).URL)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, line.Close()) })
	line.Cut()
	cfg := config.Migration{Database: config.Database{DatabaseURL: config.Secret(line.URL)}, Layout: config.Defaults[config.Layout]()}
	_, err = admin.MigrationStatus(t.Context(), cfg.Database)
	require.ErrorContains(t, err, "The database cannot be used.")
	once := line.Attempts()
	require.Positive(t, once)

	migrated := make(chan error, 1)
	go func() {
		_, err := admin.MigrateUp(t.Context(), cfg)
		migrated <- err
	}()
	require.Eventually(t, func() bool { return line.Attempts() > 3*once }, 30*time.Second, 10*time.Millisecond)
	line.Restore()
	require.NoError(t, <-migrated)
}
