package alerts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Statements of runbooks.
const (
	waitingStatements = "SELECT pid, application_name, state, now() - xact_start AS age, query FROM pg_stat_activity " +
		"WHERE xact_start IS NOT NULL ORDER BY xact_start LIMIT 5"
	//nolint:unqueryvet // A person reads all columns.
	jobErrors                = "SELECT * FROM timescaledb_information.job_errors ORDER BY start_time DESC LIMIT 5"
	connectionsByApplication = "SELECT application_name, usename, state, count(*) FROM pg_stat_activity " +
		"GROUP BY 1, 2, 3 ORDER BY 4 DESC"
	blockingSessions = "SELECT b.pid, b.usename, b.application_name, b.state, now() - b.xact_start AS age, " +
		"count(*) AS waiting, b.query FROM pg_stat_activity w, unnest(pg_blocking_pids(w.pid)) AS blocker (pid), " +
		"pg_stat_activity b WHERE b.pid = blocker.pid AND cardinality(pg_blocking_pids(b.pid)) = 0 " +
		"GROUP BY 1, 2, 3, 4, 5, 7 ORDER BY waiting DESC"
	foreignTriggers = "SELECT conname AS name, pg_get_constraintdef(oid) AS definition FROM pg_constraint " +
		"WHERE conrelid = 'readings'::regclass AND contype <> 'n' AND conname NOT IN " +
		"('readings_pkey', 'readings_bucket_at_check') UNION ALL SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger " +
		`WHERE tgrelid = 'readings'::regclass AND NOT tgisinternal AND tgname NOT LIKE 'ts\_%' AND tgname NOT IN ` +
		"('readings_inserted', 'readings_moved', 'readings_feed_inserted', 'readings_feed_updated', " +
		"'readings_written')"
	rejectsByTeam = "SELECT r.reason, t.name AS team, count(*) AS rejects, count(DISTINCT r.hardware_id) AS units, " +
		"max(r.received_at) AS newest FROM rejected_uploads r LEFT JOIN teams t ON t.id = r.team_id " +
		"WHERE r.received_at > now() - interval '1 hour' GROUP BY 1, 2 ORDER BY rejects DESC LIMIT 10"
)

// reading are the commands of the pages that change nothing. The trial runs them for each alert whose page has them.
var reading = []string{
	"roomsensor doctor", "roomsensor healthcheck", "roomsensor migrate status", "roomsensor stream status",
	"roomsensor rejects list", "roomsensor key list", "roomsensor ingest-key list", "roomsensor device list", "SELECT",
}

var (
	promql  = regexp.MustCompile("(?s)```promql\n(.*?)```")
	inlined = regexp.MustCompile("`((?:roomsensor|kubectl|SELECT) [^`]+|roomsensor doctor|roomsensor maintain)`|" +
		"```sql (SELECT [^`]+?);? ```")
	exitCode = 2 // of a usage error
)

// page is a runbook.
type page struct {
	alert    string
	queries  []string
	commands []string
}

// readPage reads the runbook of an alert.
func readPage(root, alert string) (p page, err error) {
	name := filepath.Join(root, "docs/operate/runbooks", alert+".md")
	text, err := os.ReadFile(name) //nolint:gosec // A page of the repository.
	if err != nil {
		return p, fmt.Errorf("reading a runbook: %w", err)
	}
	p.alert = alert
	for _, block := range promql.FindAllStringSubmatch(string(text), -1) {
		p.queries = append(p.queries, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	p.commands = commandsOf(string(text))
	return p, nil
}

// commandsOf lists the commands and statements in the text of a page. A line may be broken within one.
func commandsOf(text string) (list []string) {
	for _, match := range inlined.FindAllStringSubmatch(strings.Join(strings.Fields(text), " "), -1) {
		list = append(list, cmp.Or(match[1], match[2]))
	}
	return list
}

// checkRunbooks runs the queries of the runbooks of a fault, and the commands that change nothing. The first query must
// have a result. What does not work is a finding.
func (e *env) checkRunbooks(ctx context.Context, f *fault) {
	ran := map[string]bool{}
	for _, alert := range f.alerts {
		p, err := readPage(e.options.Root, alert)
		if err != nil {
			e.Unexpected("%s: %v", alert, err)
			continue
		}
		for i, query := range p.queries {
			result, err := e.prometheus.Query(ctx, shortenQuery(query))
			switch {
			case err != nil:
				e.Unexpected("%s: %s: %v", alert, query, err)
			case i == 0 && result == "[]":
				e.Unexpected("%s: %s: no result while it fires", alert, query)
			}
		}
		for _, command := range p.commands {
			command = f.replace(command)
			if changesNothing(command) && !ran[command] && f.shows[command] == "" {
				ran[command] = true
				e.runShown(ctx, alert, command, "")
			}
		}
	}
	for command, word := range f.shows {
		e.runShown(ctx, f.alerts[0], command, word)
	}
	for _, line := range f.logs {
		text, err := e.workerLog()
		if err != nil || !strings.Contains(text, line) {
			e.Unexpected("%s: the log of the worker has no %q: %v", f.alerts[0], line, err)
		}
	}
}

// changesNothing reports whether the trial can run a command for every alert whose page has it.
func changesNothing(command string) bool {
	reads := func(prefix string) bool { return strings.HasPrefix(command, prefix) }
	return !placeholder.MatchString(command) && elsewhere[command] == "" && slices.ContainsFunc(reading, reads)
}

// runShown runs a command or statement of a page. Its output must contain the word. A command may fail, because the
// service does not work, but not for its own line.
func (e *env) runShown(ctx context.Context, alert, command, word string) {
	const timeout = time.Minute
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var out string
	var err error
	if strings.HasPrefix(command, "SELECT") {
		e.commands = append(e.commands, command)
		if out, err = e.selectText(ctx, command); err != nil {
			e.Unexpected("%s: %s: %v", alert, command, err)
			return
		}
	} else {
		var messages string
		out, messages, err = e.run(ctx, strings.Fields(strings.TrimPrefix(command, "roomsensor "))...)
		out += messages
		if exit, failed := errors.AsType[*exec.ExitError](err); failed && exit.ExitCode() == exitCode {
			e.Unexpected("%s: %s is not valid: %v", alert, command, err)
			return
		}
	}
	if !strings.Contains(out, word) {
		e.Unexpected("%s: %s does not show %q: %s", alert, command, word, out)
	}
}

// command runs a command of roomsensor that must succeed, and returns its output.
func (e *env) command(ctx context.Context, args ...string) (string, error) {
	out, messages, err := e.run(ctx, args...)
	if err != nil {
		return "", fmt.Errorf("roomsensor %s: %w: %s", strings.Join(args, " "), err, messages)
	}
	return out, nil
}

// run runs a command of roomsensor as an operator on the machine of the worker. It returns stdout and stderr.
func (e *env) run(ctx context.Context, args ...string) (out, messages string, err error) {
	e.commands = append(e.commands, "roomsensor "+strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, e.programs.Roomsensor, args...) //nolint:gosec // The arguments are the trial's.
	cmd.Env = []string{
		"DATABASE_URL=" + e.server, "NATS_URL=" + e.nats.URL, "OPS_ADDR=" + e.processes[workerName].ops,
	}
	cmd.Env = slices.Concat(cmd.Env, settings, e.processes[workerName].settings)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// workerLog returns what the worker logged since the fault.
func (e *env) workerLog() (string, error) {
	text, err := os.ReadFile(filepath.Join(e.Dir, workerName+".log"))
	if err != nil {
		return "", fmt.Errorf("reading the log of the worker: %w", err)
	}
	return string(text[min(e.logged, len(text)):]), nil
}

// selectText returns the rows of a statement as text.
func (e *env) selectText(ctx context.Context, statement string) (text string, err error) {
	err = e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, statement)
		if err != nil {
			return fmt.Errorf("querying: %w", err)
		}
		defer rows.Close()
		for rows.Next() {
			row, err := rows.Values()
			if err != nil {
				return fmt.Errorf("reading a row: %w", err)
			}
			text += fmt.Sprintln(row...)
		}
		return rows.Err()
	})
	return text, err
}
