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
	id, key, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	_, ingestKey, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	values := strings.NewReplacer("SEQUENCE", "7", "TEAM", "Gym", "DEVICE", "Gym", "KEY_ID", id, "FILE", "-", "REJECT_ID", unknown,
		"SIZE", "1GiB")
	environment := map[string]string{
		"DATABASE_URL": "postgres://127.0.0.1:1/x", "NATS_URL": "nats://127.0.0.1:1",
		"ROOMSENSOR_URL": "http://127.0.0.1:1", "ROOMSENSOR_API_KEY": key, "INGEST_KEY": ingestKey,
	}
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

// shellEnd is what the shell takes from the end of a line: a comment, a redirection, or a process in the background.
var shellEnd = regexp.MustCompile(` +(#.*|>.*|&)$`)

var pageCommand = regexp.MustCompile(`(?m)^ *(?:[A-Z_]+=\S+ )?roomsensor (.+)$`)

// Each command in a block of a page is a valid command line.
func TestPageCommands(t *testing.T) {
	t.Parallel()
	values := strings.NewReplacer("$RESTORE_TO", "2026-11-22T03:10:00Z", "DEVICE", "Gym", "KEY_ID", "om4smmowqyzy7gny")
	_, key, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	_, ingestKey, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	environment := map[string]string{
		"DATABASE_URL": "postgres://127.0.0.1:1/x", "NATS_URL": "nats://127.0.0.1:1", "ROOMSENSOR_URL": "http://127.0.0.1:1",
		"DASHBOARD_URL": "https://dashboard.example.com", "ROOMSENSOR_API_KEY": key, "INGEST_KEY": ingestKey,
	}
	files, err := filepath.Glob("../../docs/operate/*.md")
	require.NoError(t, err)
	commands := 0
	for _, name := range files {
		for _, block := range shellBlocks(string(readFile(t, name))) {
			for _, match := range pageCommand.FindAllStringSubmatch(strings.ReplaceAll(block, "\\\n", " "), -1) {
				line := shellEnd.ReplaceAllString(match[1], "")
				parse(t, words(values.Replace(line)), environment, map[string]bool{})
				commands++
			}
		}
	}
	require.Greater(t, commands, 30)
}

// shellBlocks returns the blocks of commands of a page.
func shellBlocks(page string) (blocks []string) {
	for i, part := range strings.Split(page, "```") { // Every second part is a block.
		if text, ok := strings.CutPrefix(part, "sh\n"); ok && i%2 == 1 {
			blocks = append(blocks, text)
		}
	}
	return blocks
}

// words divides a command line. Double quotes keep white space.
func words(line string) (args []string) {
	for i, part := range strings.Split(line, `"`) { // Every second part is quoted.
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	return args
}

// elsewhere are the pages whose statements do not run in TestPageStatements.
var elsewhere = []string{
	"security.md",      // A role and a database belong to the whole server, which other tests use too.
	"personal-data.md", // TestTeamDelete runs it.
	"retention.md",     // DuckDB runs them, in test/readers.
}

// The statements of pages and of a runbook are valid, in the order of the page, and also a second time.
func TestPageStatements(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	files, err := filepath.Glob("../../docs/operate/*.md")
	require.NoError(t, err)
	pages := []string{"runbooks/RoomsensorRejectsRise.md"}
	for _, file := range files {
		page := filepath.Base(file)
		if strings.Contains(string(readFile(t, file)), "```sql\n") && !slices.Contains(elsewhere, page) {
			pages = append(pages, page)
		}
	}
	require.Subset(t, pages, []string{"audit.md", "incidents.md", "timescaledb.md"})
	values := strings.NewReplacer("OLD_DEVICE_ID", unknown, "NEW_DEVICE_ID", unknown, "TIME_OF_SWAP", "2026-11-22T03:10:00Z")
	for _, page := range pages {
		for range 2 {
			for _, statement := range statements(t, page) {
				o.exec(values.Replace(statement))
			}
		}
	}
}

// A new database has no foreign constraint or trigger.
func TestIncidentStatements(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
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
		args := words(strings.ReplaceAll(match[1], "--to kim-lee", "--to "+directory))
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
