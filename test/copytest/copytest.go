// Package copytest reads local copies, as a user does, and the table that they copy.
package copytest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	parquetgo "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // The driver.
)

// Line returns a reading as a text that can be compared.
func Line(device string, at, ingested time.Time, metrics ...*float64) string {
	cells := []string{device, at.UTC().Format(time.RFC3339Nano)}
	for _, x := range metrics {
		if x == nil {
			cells = append(cells, "-")
		} else {
			cells = append(cells, fmt.Sprint(float32(*x)))
		}
	}
	return strings.Join(append(cells, ingested.UTC().Format(time.RFC3339Nano)), " ")
}

// OpenSQLite opens a SQLite file.
func OpenSQLite(t require.TestingT, path string) *sql.DB {
	absolute, err := filepath.Abs(path)
	require.NoError(t, err)
	name := url.URL{Scheme: "file", Path: absolute} // A path may have characters that have a meaning for the driver.
	db, err := sql.Open("sqlite", name.String())
	require.NoError(t, err)
	return db
}

// SQLite returns the readings of a SQLite file.
func SQLite(t require.TestingT, path string) (lines []string) {
	db := OpenSQLite(t, path)
	defer func() { require.NoError(t, db.Close()) }()
	rows, err := db.QueryContext(context.Background(), `
		SELECT device_id, bucket_at, ingested_at, co2_ppm, temp_c, humidity_pct, lux, spl_db FROM readings`)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var device, at, ingested string
		var m [5]*float64
		require.NoError(t, rows.Scan(&device, &at, &ingested, &m[0], &m[1], &m[2], &m[3], &m[4]))
		lines = append(lines, Line(device, parse(t, at), parse(t, ingested), m[:]...))
	}
	require.NoError(t, rows.Err())
	slices.Sort(lines)
	return lines
}

func parse(t require.TestingT, text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return at
}

// Parquet returns the readings of a Parquet directory, whose columns it finds by their names. It checks their order.
func Parquet(t require.TestingT, path string) (lines []string) {
	dir := os.DirFS(path)
	files, err := fs.Glob(dir, "current/readings/*.parquet")
	require.NoError(t, err)
	for _, name := range files {
		text, err := fs.ReadFile(dir, name)
		require.NoError(t, err)
		r := parquetgo.NewReader(bytes.NewReader(text))
		before := ""
		for {
			row := map[string]any{}
			err := r.Read(&row)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			var m [5]*float64
			for i, metric := range []string{"co2_ppm", "temp_c", "humidity_pct", "lux", "spl_db"} {
				if x, ok := row[metric].(float32); ok {
					m[i] = new(float64(x))
				}
			}
			at := instant(row["bucket_at"])
			require.Equal(t, at.Format("2006-01")+".parquet", filepath.Base(name))
			key := at.Format(time.RFC3339Nano) + fmt.Sprint(row["device_id"])
			require.Less(t, before, key)
			before = key
			lines = append(lines, Line(fmt.Sprint(row["device_id"]), at, instant(row["ingested_at"]), m[:]...))
		}
	}
	slices.Sort(lines)
	return lines
}

func instant(value any) time.Time {
	if at, ok := value.(time.Time); ok {
		return at.UTC()
	}
	return time.UnixMicro(value.(int64)).UTC() //nolint:forcetypeassert // Parquet has no other type for it.
}

// Table returns the readings of a team.
func Table(t testing.TB, database *pgxpool.Pool, team uuid.UUID) (lines []string) {
	t.Helper()
	rows, err := database.Query(t.Context(), `
		SELECT r.device_id::text, bucket_at, ingested_at, co2_ppm, temp_c, humidity_pct, lux, spl_db
		FROM readings r JOIN devices d ON d.id = r.device_id WHERE d.team_id = $1`, team)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var device string
		var at, ingested time.Time
		var m [5]*float64
		require.NoError(t, rows.Scan(&device, &at, &ingested, &m[0], &m[1], &m[2], &m[3], &m[4]))
		lines = append(lines, Line(device, at, ingested, m[:]...))
	}
	require.NoError(t, rows.Err())
	slices.Sort(lines)
	return lines
}
