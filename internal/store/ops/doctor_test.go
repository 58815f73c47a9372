package ops_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// TestTableLock checks that the command doctor tries to write every table.
func TestTableLock(t *testing.T) {
	t.Parallel()
	f := setup(t)
	require.NoError(t, f.TryWrite(t.Context()))
	tx, err := f.SQL.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	require.NoError(t, f.Queries.TableLock(t.Context(), tx))
	rows, err := tx.Query(t.Context(), `SELECT tablename FROM pg_tables
		WHERE schemaname = 'public' AND tablename <> 'goose_db_version' AND NOT EXISTS (
			SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'RowExclusiveLock'
			AND relation = format('public.%I', tablename)::regclass)`)
	require.NoError(t, err)
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Empty(t, left)
}
