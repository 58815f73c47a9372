package api_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dbtest"
)

// stillClock takes the place of the server's clock: the names by which the
// service's SQL asks for the time are found in a schema that stands before the
// server's own.
const stillClock = `
	CREATE SCHEMA still;
	CREATE TABLE still.clock (at timestamptz NOT NULL);
	CREATE FUNCTION still.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM still.clock';
	CREATE FUNCTION still.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM still.clock';
	ALTER TABLE idempotency_keys ALTER created_at SET DEFAULT still.now();
	DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET search_path = still, pg_catalog, public', current_database());
	END $$`

// setupStill is a fixture whose database has the clock of the fixture.
func setupStill(t *testing.T) *fixture {
	t.Helper()
	database := dbtest.New(t)
	conn, err := pgx.Connect(t.Context(), database.URL)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), stillClock)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "INSERT INTO still.clock VALUES ($1)", start)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	return setupOn(t, database)
}

// pass moves the clock of a still fixture.
func (f *fixture) pass(t *testing.T, d time.Duration) {
	t.Helper()
	f.clock.advance(d)
	f.exec(t, `UPDATE still.clock SET at = $1`, f.clock.now())
}
