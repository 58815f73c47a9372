package samples_test

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"

	"roomsensor/client"
)

var (
	statementFence = regexp.MustCompile("(?ms)^```(sql|excel)\n(.*?)^```$")
	// timeFilter is a macro of Grafana: a condition on a column.
	timeFilter = regexp.MustCompile(`\$__timeFilter\(([^)]+)\)`)
)

// statementsOf returns the blocks of SQL, or the formulas, in a section of a page.
func statementsOf(t *testing.T, page, section string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docsDir, page))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	require.True(t, found, section)
	rest, _, _ = strings.Cut(rest, "\n## ")
	for _, match := range statementFence.FindAllStringSubmatch(rest, -1) {
		blocks = append(blocks, match[2])
	}
	return blocks
}

// checkGrafana runs the statements for Grafana's PostgreSQL data source: those of the owner, and those of the panels with
// the role that the owner creates.
func (e *env) checkGrafana(t *testing.T) {
	t.Helper()
	blocks := statementsOf(t, "guides/recipes.md", "Grafana from the database")
	require.Len(t, blocks, 3)
	owner, err := pgx.Connect(t.Context(), e.database)
	require.NoError(t, err)
	defer func() { require.NoError(t, owner.Close(t.Context())) }()
	role := "grafana_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	_, err = owner.Exec(t.Context(), strings.NewReplacer("grafana", role, "'...'", "'"+role+"'").Replace(blocks[0]))
	require.NoError(t, err)
	defer func() {
		_, err := owner.Exec(t.Context(), "DROP OWNED BY "+role+"; DROP ROLE "+role)
		require.NoError(t, err)
	}()

	var team string
	require.NoError(t, owner.QueryRow(t.Context(), "SELECT team_id FROM devices WHERE id = $1", e.device).Scan(&team))
	cfg, err := pgx.ParseConfig(e.database)
	require.NoError(t, err)
	cfg.User, cfg.Password = role, role
	grafana, err := pgx.ConnectConfig(t.Context(), cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, grafana.Close(t.Context())) }()
	for _, panel := range blocks[1:] {
		query := timeFilter.ReplaceAllString(panel, "$1 BETWEEN now() - INTERVAL '2 days' AND now()")
		rows, err := grafana.Query(t.Context(), strings.ReplaceAll(query, "TEAM_ID", team))
		require.NoError(t, err)
		var columns []string
		for _, field := range rows.FieldDescriptions() {
			columns = append(columns, field.Name)
		}
		require.Equal(t, []string{"time", "metric", "co2_ppm"}, columns)
		points := 0
		for rows.Next() {
			points++
		}
		require.NoError(t, rows.Err())
		require.Greater(t, points, 24, query)
	}
	_, err = grafana.Exec(t.Context(), "DELETE FROM readings")
	require.ErrorContains(t, err, "permission denied")
}

// recentNights returns the nights of the demo, as a program gets them and as nights.csv.
func (e *env) recentNights(t *testing.T) (items []client.Night, text string) {
	t.Helper()
	c, err := client.New(e.api, e.key)
	require.NoError(t, err)
	query := client.NightQuery{From: time.Now().AddDate(0, 0, -7), To: time.Now().AddDate(0, 0, -2)} // They are over.
	for night, err := range c.Nights(t.Context(), query) {
		require.NoError(t, err)
		items = append(items, night)
	}
	file, err := c.ExportNightsCSV(t.Context(), query)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	all, err := io.ReadAll(file)
	require.NoError(t, err)
	return items, string(all)
}

// checkMissingNights runs the statement for DuckDB about nights.csv on a table of PostgreSQL.
func (e *env) checkMissingNights(t *testing.T) {
	t.Helper()
	blocks := statementsOf(t, "guides/recipes.md", "Missing nights")
	require.Len(t, blocks, 1)
	items, text := e.recentNights(t)
	db, err := pgx.Connect(t.Context(), e.database)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close(t.Context())) }()
	header, _, _ := strings.Cut(text, "\n")
	var columns []string
	for name := range strings.SplitSeq(header, ",") {
		kind := "text"
		if name == "present" || name == "expected" {
			kind = "double precision"
		}
		columns = append(columns, pgx.Identifier{name}.Sanitize()+" "+kind)
	}
	_, err = db.Exec(t.Context(), "CREATE TEMP TABLE nights ("+strings.Join(columns, ", ")+")")
	require.NoError(t, err)
	_, err = db.PgConn().CopyFrom(t.Context(), strings.NewReader(text), "COPY nights FROM STDIN (FORMAT csv, HEADER)")
	require.NoError(t, err)
	found, err := db.Query(t.Context(), strings.ReplaceAll(blocks[0], "'nights.csv'", "nights"))
	require.NoError(t, err)
	got, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (string, error) {
		values, err := row.Values()
		return fmt.Sprint(values...), err
	})
	require.NoError(t, err)
	var want []string
	for _, n := range items {
		if float64(n.Present) < 0.8*float64(n.Expected) {
			want = append(want, fmt.Sprint(n.Night, *n.DisplayName, n.Label, float64(n.Present), float64(n.Expected)))
		}
	}
	require.NotEmpty(t, want)
	require.ElementsMatch(t, want, got)
}

// checkFormula calculates the formula for spreadsheets that joins nights by external_ref.
func (e *env) checkFormula(t *testing.T) {
	t.Helper()
	blocks := statementsOf(t, "guides/recipes.md", "Nights and training load")
	require.Len(t, blocks, 1)
	items, text := e.recentNights(t)
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	book := excelize.NewFile()
	defer func() { require.NoError(t, book.Close()) }()
	for _, name := range []string{"nights", "training"} {
		_, err := book.NewSheet(name)
		require.NoError(t, err)
	}
	set := func(sheet, cell string, value any) {
		t.Helper()
		require.NoError(t, book.SetCellValue(sheet, cell, value))
	}
	for i, row := range rows {
		for j, text := range row {
			cell, err := excelize.CoordinatesToCellName(j+1, i+1)
			require.NoError(t, err)
			if number, err := strconv.ParseFloat(text, 64); err == nil {
				set("nights", cell, number)
			} else if text != "" {
				set("nights", cell, text)
			}
		}
	}
	i := slices.IndexFunc(items, func(n client.Night) bool { return n.ExternalRef != nil && n.CO2PPM.Mean != nil })
	require.GreaterOrEqual(t, i, 0)
	ref, night := *items[i].ExternalRef, items[i].Night
	sum, count := 0.0, 0.0
	for _, n := range items {
		if n.ExternalRef != nil && *n.ExternalRef == ref && n.Night == night && n.CO2PPM.Mean != nil {
			sum, count = sum+*n.CO2PPM.Mean, count+1
		}
	}
	calculate := func(ref string) string {
		set("training", "A2", ref)
		set("training", "B2", night)
		require.NoError(t, book.SetCellFormula("training", "D2", strings.TrimSpace(blocks[0])))
		value, err := book.CalcCellValue("training", "D2")
		require.NoError(t, err)
		return value
	}
	got, err := strconv.ParseFloat(calculate(ref), 64)
	require.NoError(t, err)
	require.InDelta(t, sum/count, got, 0.001)
	require.Empty(t, calculate("athlete-0"))
}
