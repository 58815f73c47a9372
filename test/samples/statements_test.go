package samples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

var (
	sqlFence = regexp.MustCompile("(?ms)^```sql\n(.*?)^```$")
	// timeFilter is a macro of Grafana: a condition on a column.
	timeFilter = regexp.MustCompile(`\$__timeFilter\(([^)]+)\)`)
)

// sqlOf returns the blocks of SQL in a section of a page.
func sqlOf(t *testing.T, page, section string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docsDir, page))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	require.True(t, found, section)
	rest, _, _ = strings.Cut(rest, "\n## ")
	for _, match := range sqlFence.FindAllStringSubmatch(rest, -1) {
		blocks = append(blocks, match[1])
	}
	return blocks
}

// checkGrafana runs the statements for Grafana's PostgreSQL data source: those of the owner, and those of the panels with
// the role that the owner creates.
func (e *env) checkGrafana(t *testing.T) {
	t.Helper()
	blocks := sqlOf(t, "guides/recipes.md", "Grafana from the database")
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
