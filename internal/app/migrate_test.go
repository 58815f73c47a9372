package app_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
	"roomsensor/internal/dbtest"
)

// Deployments migrate while the database starts: one that does not answer at
// first is asked again.
func TestMigrateUpAsksAgain(t *testing.T) {
	t.Parallel()
	line := newLine(t, dbtest.Empty(t).URL)
	line.Cut()
	cfg := config.Migration{Database: config.Database{DatabaseURL: line.URL}, Layout: config.DefaultLayout()}
	_, err := app.MigrationStatus(t.Context(), cfg.Database)
	require.ErrorContains(t, err, "The database cannot be used.")
	once := line.Attempts()
	require.Positive(t, once)

	migrated := make(chan error, 1)
	go func() {
		_, err := app.MigrateUp(t.Context(), cfg)
		migrated <- err
	}()
	require.Eventually(t, func() bool { return line.Attempts() > 3*once }, patience, 10*time.Millisecond)
	line.Mend()
	require.NoError(t, <-migrated)
}
