//go:build cgo

package readers_test

import (
	"database/sql"
	"os"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/require"
)

// views are the two files. The CSV has an apostrophe before some names (decision 27 h).
//
//nolint:unqueryvet // All columns are compared.
const views = `
	CREATE VIEW csv AS FROM read_csv('DIR/readings.csv', header = true, nullstr = '', columns = {
		'bucket_at': 'TIMESTAMPTZ', 'device_id': 'VARCHAR', 'display_name': 'VARCHAR', 'co2_ppm': 'FLOAT', 'temp_c': 'FLOAT',
		'humidity_pct': 'FLOAT', 'lux': 'FLOAT', 'spl_db': 'FLOAT', 'valid_mask': 'INTEGER', 'ingested_at': 'TIMESTAMPTZ'})
		SELECT * REPLACE (regexp_replace(display_name, '^''([=@])', '\1') AS display_name);
	CREATE VIEW parquet AS FROM read_parquet('DIR/readings.parquet');
	CREATE VIEW numbered AS FROM read_parquet('DIR/readings.parquet', file_row_number = true);
	CREATE VIEW columns AS FROM parquet_metadata('DIR/readings.parquet')`

// duck is a DuckDB in memory.
type duck struct{ *sql.DB }

func open(t *testing.T) duck {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return duck{db}
}

// ask returns the only row of a query, as text.
func (d duck) ask(t *testing.T, query string) (answer string) {
	t.Helper()
	require.NoError(t, d.QueryRowContext(t.Context(), query).Scan(&answer), query)
	return answer
}

// TestDuckDB checks that DuckDB finds the rows of the CSV, which it reads itself, in the file, with their types and in
// their order.
func TestDuckDB(t *testing.T) {
	t.Parallel()
	e, d := newExport(t), open(t)
	_, err := d.ExecContext(t.Context(), strings.ReplaceAll(views, "DIR", e.dir))
	require.NoError(t, err)
	require.Equal(t, "100000", d.ask(t, `SELECT count(*)::text FROM parquet`))
	const types = `SELECT list((column_name, column_type))::text FROM (DESCRIBE FROM ?)`
	require.Equal(t, d.ask(t, strings.Replace(types, "?", "csv", 1)), d.ask(t, strings.Replace(types, "?", "parquet", 1)))
	require.Equal(t, "0", d.ask(t, `SELECT count(*)::text FROM (
		(FROM csv EXCEPT ALL FROM parquet) UNION ALL (FROM parquet EXCEPT ALL FROM csv))`), "rows in one of the two only")
	require.Equal(t, "0", d.ask(t, `SELECT count(*)::text FROM (
		SELECT file_row_number AS place, row_number() OVER (ORDER BY bucket_at, device_id) - 1 AS sorted FROM numbered
	) WHERE place <> sorted`), "rows out of order")
	require.Equal(t, "ZSTD", d.ask(t, `SELECT string_agg(DISTINCT compression) FROM columns`))
}

// TestDuckDBRecipe runs the statements of the recipe, which use the time zones of DuckDB.
func TestDuckDBRecipe(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/guides/recipes.md")
	require.NoError(t, err)
	_, statements, found := strings.Cut(string(page), "```sql\n")
	require.True(t, found)
	statements, _, _ = strings.Cut(statements, "```")
	require.Contains(t, statements, "'gym.parquet'")
	e, d := newExport(t), open(t)
	d.SetMaxOpenConns(1) // SET applies to a connection.
	rows, err := d.QueryContext(t.Context(), strings.ReplaceAll(statements, "gym.parquet", e.path("readings.parquet")))
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	found = false
	for rows.Next() {
		var room, month string
		var percent float64
		require.NoError(t, rows.Scan(&room, &month, &percent))
		require.Regexp(t, `^2026-0[12]$`, month)
		found = found || (room == "Hall" && percent > 0 && percent < 100)
	}
	require.NoError(t, rows.Err())
	require.True(t, found)
}
