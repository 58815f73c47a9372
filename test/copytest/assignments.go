package copytest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	parquetgo "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
)

// assignmentLine returns an assignment as a text that can be compared.
func assignmentLine(started time.Time, ended *time.Time, texts ...*string) string {
	end := "-"
	if ended != nil {
		end = ended.UTC().Format(time.RFC3339Nano)
	}
	cells := []string{started.UTC().Format(time.RFC3339Nano), end}
	for _, text := range texts {
		if text == nil {
			cells = append(cells, "-")
		} else {
			cells = append(cells, fmt.Sprintf("%q", *text))
		}
	}
	return strings.Join(cells, " ")
}

// SQLiteAssignments returns the assignments of a SQLite file.
func SQLiteAssignments(t require.TestingT, path string) (lines []string) {
	db := OpenSQLite(t, path)
	defer func() { require.NoError(t, db.Close()) }()
	rows, err := db.QueryContext(context.Background(), `
		SELECT started_at, ended_at, assignment_id, type, label, home_or_travel, external_ref, device_id, display_name
		FROM assignments`)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var start string
		var end *string
		var m [7]*string
		require.NoError(t, rows.Scan(&start, &end, &m[0], &m[1], &m[2], &m[3], &m[4], &m[5], &m[6]))
		var ended *time.Time
		if end != nil {
			ended = new(parse(t, *end))
		}
		lines = append(lines, assignmentLine(parse(t, start), ended, m[:]...))
	}
	require.NoError(t, rows.Err())
	slices.Sort(lines)
	return lines
}

// ParquetAssignments returns the assignments of a Parquet directory.
func ParquetAssignments(t require.TestingT, path string) (lines []string) {
	type row struct {
		ID      string     `parquet:"assignment_id"`
		Type    string     `parquet:"type"`
		Label   string     `parquet:"label"`
		Home    string     `parquet:"home_or_travel"`
		Started time.Time  `parquet:"started_at,timestamp(microsecond)"`
		Ended   *time.Time `parquet:"ended_at,optional,timestamp(microsecond)"`
		Ref     *string    `parquet:"external_ref,optional"`
		Device  string     `parquet:"device_id"`
		Name    *string    `parquet:"display_name,optional"`
	}
	rows, err := parquetgo.ReadFile[row](filepath.Join(path, "current", "assignments.parquet"))
	require.NoError(t, err)
	for _, r := range rows {
		lines = append(lines, assignmentLine(r.Started, r.Ended, &r.ID, &r.Type, &r.Label, &r.Home, r.Ref, &r.Device, r.Name))
	}
	slices.Sort(lines)
	return lines
}

// Assignments returns the assignments of a team that had not ended by a time.
func Assignments(t testing.TB, database *pgxpool.Pool, team uuid.UUID, from time.Time) (lines []string) {
	t.Helper()
	rows, err := database.Query(t.Context(), `
		SELECT started_at, ended_at, a.id::text, type, label, home_or_travel, external_ref, device_id::text, display_name
		FROM assignments a JOIN devices d ON d.id = a.device_id
		WHERE d.team_id = $1 AND (ended_at IS NULL OR ended_at > $2)`, team, from)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var started time.Time
		var ended *time.Time
		var m [7]*string
		require.NoError(t, rows.Scan(&started, &ended, &m[0], &m[1], &m[2], &m[3], &m[4], &m[5], &m[6]))
		lines = append(lines, assignmentLine(started, ended, m[:]...))
	}
	require.NoError(t, rows.Err())
	slices.Sort(lines)
	return lines
}
