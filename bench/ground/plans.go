package ground

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

// explaining makes PostgreSQL log the plan of every statement with times and buffers, also of those in functions.
const explaining = "-c session_preload_libraries=auto_explain -c auto_explain.log_min_duration=0" +
	" -c auto_explain.log_analyze=on -c auto_explain.log_buffers=on -c auto_explain.log_nested_statements=on"

// Explained is the service's database for connections whose plans are to be logged.
func Explained(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("reading the database's URL: %w", err)
	}
	query := u.Query()
	query.Set("options", explaining)
	// PostgreSQL wants %20 where a form would have +.
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	return u.String(), nil
}

var errForeignLog = errors.New("plans are read from the log of a server that was started for the benchmark")

// Logged is how long the server's log is by now.
func (g *Ground) Logged() (int64, error) {
	info, err := os.Stat(g.serverLog())
	if err != nil {
		return 0, errors.Join(errForeignLog, err)
	}
	return info.Size(), nil
}

func (g *Ground) serverLog() string { return filepath.Join(g.Server.DataDir, "server.log") }

// entry begins a line of the log that is not a continuation.
var entry = regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d .*?(LOG|ERROR|FATAL|WARNING|STATEMENT|CONTEXT|DETAIL|HINT):  `)

// afterStatement is what follows the text of a statement.
var afterStatement = regexp.MustCompile(`Query Parameters:|  \(cost=`)

// Plans are those that the server logged since a length of its log: of each statement the last one, when everything was
// warm, in the order in which the statements came first.
func (g *Ground) Plans(since int64) (string, error) {
	text, err := os.ReadFile(g.serverLog())
	if err != nil {
		return "", errors.Join(errForeignLog, err)
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

// mostOfLine is enough of a line of a plan: lists of a thousand ids are not read.
const mostOfLine = 240

func readable(plan string) string {
	lines := strings.Split(plan, "\n")
	for i, line := range lines {
		line = strings.TrimPrefix(line, "\t")
		if len(line) > mostOfLine {
			line = line[:mostOfLine] + " ..."
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}
