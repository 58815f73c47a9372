package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
	"roomsensor/internal/roomsensor"
)

var runbookCommand = regexp.MustCompile("`roomsensor ([^`]+)`")

// Each command in a runbook is a valid command line.
func TestRunbookCommands(t *testing.T) {
	t.Parallel()
	id, _, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	values := strings.NewReplacer("SEQUENCE", "7", "TEAM", "Gym", "DEVICE", "Gym", "KEY_ID", id, "FILE", "-", "REJECT_ID", unknown,
		"SIZE", "1GiB")
	environment := map[string]string{"DATABASE_URL": "postgres://127.0.0.1:1/x", "NATS_URL": "nats://127.0.0.1:1"}
	files, err := filepath.Glob("../../docs/operate/runbooks/*.md")
	require.NoError(t, err)
	files = append(files, "../../docs/operate/incidents.md")
	commands := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		unwrapped := strings.Join(strings.Fields(string(text)), " ")
		for _, match := range runbookCommand.FindAllStringSubmatch(unwrapped, -1) {
			parse(t, strings.Fields(values.Replace(match[1])), environment, map[string]bool{})
			commands++
		}
	}
	require.Greater(t, commands, 10)
}

// statements returns the fenced statements of a page of docs/operate.
func statements(t *testing.T, page string) (list []string) {
	t.Helper()
	for _, block := range strings.Split(string(readFile(t, "../../docs/operate/"+page)), "```sql\n")[1:] {
		statement, _, _ := strings.Cut(block, "```")
		list = append(list, statement)
	}
	require.NotEmpty(t, list, page)
	return list
}

// The statements of the incidents page and of runbooks are valid. A new database has no foreign constraint or trigger.
func TestIncidentStatements(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	require.Len(t, statements(t, "incidents.md"), 5)
	for _, page := range []string{"incidents.md", "runbooks/RoomsensorRejectsRise.md"} {
		for _, statement := range statements(t, page) {
			o.exec(statement)
		}
	}
	foreign := statements(t, "runbooks/RoomsensorWorkerHolds.md")[0]
	require.Empty(t, o.names(foreign))
	o.exec("ALTER TABLE readings ADD CONSTRAINT not_hot CHECK (temp_c < 60)")
	o.exec("CREATE TRIGGER audited BEFORE INSERT ON readings FOR EACH ROW " +
		"EXECUTE FUNCTION suppress_redundant_updates_trigger()")
	require.Equal(t, []string{"audited", "not_hot"}, o.names(foreign))
}

// names returns the column name of a statement in order.
func (o *operator) names(sql string) []string {
	o.t.Helper()
	conn, err := pgx.Connect(o.t.Context(), o.environment["DATABASE_URL"])
	require.NoError(o.t, err)
	defer func() { require.NoError(o.t, conn.Close(context.WithoutCancel(o.t.Context()))) }()
	sql = strings.TrimSuffix(strings.TrimSpace(sql), ";")
	rows, err := conn.Query(o.t.Context(), "SELECT name FROM ("+sql+") AS found ORDER BY 1")
	require.NoError(o.t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(o.t, err)
	return names
}

var documentedCommand = regexp.MustCompile(`(?m)^ *roomsensor (person .*|user .*)$`)

// The commands of the page on personal data run against a team with that person.
func TestPersonalDataCommands(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.environment["DASHBOARD_URL"] = "https://dashboard.example.com"
	team, _ := athlete(o)
	o.do("team", "rename", team, "--name", "Riverside Athletics")
	directory := filepath.Join(t.TempDir(), "kim-lee")
	commands := documentedCommand.FindAllStringSubmatch(string(readFile(t, "../../docs/operate/personal-data.md")), -1)
	require.Len(t, commands, 6)
	for _, match := range commands {
		words := strings.ReplaceAll(match[1], "--to kim-lee", "--to "+directory)
		var args []string
		for i, part := range strings.Split(words, `"`) { // Every second part is quoted.
			if i%2 == 1 {
				args = append(args, part)
			} else {
				args = append(args, strings.Fields(part)...)
			}
		}
		if args[0] == "user" {
			o.do("user", "invite", "--team", team, "--email", "kim@example.com", "--role", "viewer")
		}
		if args[1] != "export" && !slices.Contains(args, "--dry-run") {
			args = append(args, "--yes")
		}
		r := o.run(args...)
		require.Equal(t, cli.ExitOK, r.code, "%v: %s", args, r.err)
	}
}
