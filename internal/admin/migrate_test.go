package admin_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/admin"
	"roomsensor/internal/config"
	"roomsensor/schema"
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
	require.Eventually(t, func() bool { return line.Attempts() > 3*once }, proctest.Patience, 10*time.Millisecond)
	line.Restore()
	require.NoError(t, <-migrated)
}

// An owner of the tables that does not own the database may not create tables, as after a restore without it.
func TestMigrateUpOwner(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t) // With the roles of the server.
	address, err := url.Parse(db.As(t, schema.RoleWorker))
	require.NoError(t, err)
	empty, err := url.Parse(dbtest.Empty(t).URL)
	require.NoError(t, err)
	empty.User = address.User
	_, err = admin.MigrateUp(t.Context(), config.Migration{
		Database: config.Database{DatabaseURL: config.Secret(empty.String())}, Layout: config.Defaults[config.Layout](),
	})
	require.ErrorContains(t, err, "the role roomsensor_test_worker may not create tables in the schema public")
	require.ErrorContains(t, err, "OWNER TO roomsensor_test_worker;")
}
