package env

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// explainOptions make PostgreSQL log the plan of every statement with times and buffers, including those in functions.
const explainOptions = "-c session_preload_libraries=auto_explain -c auto_explain.log_min_duration=0" +
	" -c auto_explain.log_analyze=on -c auto_explain.log_buffers=on -c auto_explain.log_nested_statements=on"

// ExplainURL returns a database URL whose connections log their plans.
func ExplainURL(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("reading the database's URL: %w", err)
	}
	query := u.Query()
	query.Set("options", explainOptions)
	// PostgreSQL requires %20 instead of +.
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	return u.String(), nil
}

var errNoLog = errors.New("plans are available only from a server that the benchmark started")

// LogSize returns the size of the server's log in bytes.
func (e *Env) LogSize() (int64, error) {
	info, err := os.Stat(e.serverLog())
	if err != nil {
		return 0, errors.Join(errNoLog, err)
	}
	return info.Size(), nil
}

func (e *Env) serverLog() string { return filepath.Join(e.Server.DataDir, "server.log") }

// entry matches the start of a log entry.
var entry = regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d .*?(LOG|ERROR|FATAL|WARNING|STATEMENT|CONTEXT|DETAIL|HINT):  `)

// afterStatement matches what follows the text of a statement.
var afterStatement = regexp.MustCompile(`Query Parameters:|  \(cost=`)

// Plans returns the last plan of each statement that the server logged after the given offset, in the order of the
// first execution. The last execution ran with warm caches.
func (e *Env) Plans(since int64) (string, error) {
	text, err := os.ReadFile(e.serverLog())
	if err != nil {
		return "", errors.Join(errNoLog, err)
	}
	last := map[string]string{}
	var order []string
	for _, part := range entry.Split(string(text[min(since, int64(len(text))):]), -1) {
		took, plan, found := strings.Cut(part, "plan:\n")
		if !found {
			continue
		}
		statement := afterStatement.Split(plan, 2)[0]
		if last[statement] == "" {
			order = append(order, statement)
		}
		last[statement] = readable(took + plan)
	}
	var all bytes.Buffer
	for _, statement := range order {
		all.WriteString(last[statement] + "\n")
	}
	return all.String(), nil
}

// maxLine truncates lists of a thousand ids in plans.
const maxLine = 240

func readable(plan string) string {
	lines := strings.Split(plan, "\n")
	for i, line := range lines {
		line = strings.TrimPrefix(line, "\t")
		if len(line) > maxLine {
			line = line[:maxLine] + " ..."
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}
