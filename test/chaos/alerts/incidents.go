package alerts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"roomsensor/internal/roomsensor"
)

// elsewhere are the commands of the pages that this trial does not run, with what runs them or the reason why nothing
// does. The names in capitals are those of the pages.
var elsewhere = map[string]string{
	"kubectl rollout undo deployment/roomsensor-api":       "needs a Kubernetes cluster",
	"kubectl rollout undo deployment/roomsensor-dashboard": "needs a Kubernetes cluster",
	"kubectl rollout status deployment/roomsensor-api":     "needs a Kubernetes cluster",
	"kubectl rollout pause deployment/roomsensor-api":      "needs a Kubernetes cluster",
	"kubectl get pods":                           "needs a Kubernetes cluster",
	"SELECT pg_wal_replay_resume()":              "the tests of internal/store, which start a standby",
	"roomsensor migrate up --readings-keep 730d": "the tests of the Community edition, which has a retention",
}

// followIncidents runs the commands of the page on incidents and of runbooks that no fault needs, in an order in which
// each finds what it needs.
func (e *env) followIncidents(ctx context.Context) error {
	team := "--team=" + mainTeam
	var key, credential struct {
		ID string `json:"key_id"`
	}
	var rejects struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	var reject struct {
		Payload string `json:"payload"`
	}
	file := filepath.Join(e.Dir, "upload.json")
	for _, step := range []struct {
		result any
		args   func() []string
	}{
		{&key, words("key create %s --label=replacement", team)},
		{nil, func() []string { return []string{"key", "revoke", key.ID} }},
		{nil, func() []string { return []string{"audit", "list", "--actor", key.ID} }},
		{&credential, words("ingest-key create %s", team)},
		{nil, func() []string { return []string{"ingest-key", "revoke", credential.ID} }},
		{nil, words("rejects list --reason measured_at_out_of_range")},
		{&rejects, words("rejects list --limit 100")},
		{&reject, func() []string { return []string{"rejects", "show", rejects.Data[0].ID} }},
		{nil, func() []string { return []string{"upload", file} }},
		{nil, words("rejects replay --reason unknown_unit")},
		{nil, words("maintain")},
		{nil, words("stream replay")},
		{nil, words("stream replay --since %s", roomsensor.FormatTime(time.Now().UTC().Add(-time.Minute)))},
	} {
		args := step.args()
		if slices.Contains(args, file) {
			if err := os.WriteFile(file, []byte(reject.Payload), 0o600); err != nil {
				return fmt.Errorf("keeping the payload of a reject: %w", err)
			}
		}
		out, err := e.command(ctx, args...)
		if err == nil && step.result != nil {
			err = json.Unmarshal([]byte(out), step.result)
		}
		if err != nil {
			return fmt.Errorf("following the page on incidents: %w", err)
		}
		if len(rejects.Data) == 0 && step.result == &rejects {
			return fmt.Errorf("following the page on incidents: no reject is listed") //nolint:err113 // It is not handled.
		}
	}
	e.runShown(ctx, "RoomsensorHourlyRefreshOld", jobErrors, "")
	return e.runStatements(ctx)
}

// runStatements runs the statements of the page on incidents.
func (e *env) runStatements(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(e.options.Root, incidentsPage))
	if err != nil {
		return fmt.Errorf("reading the page on incidents: %w", err)
	}
	for _, command := range commandsOf(string(text)) {
		if strings.HasPrefix(command, "SELECT") && changesNothing(command) {
			e.runShown(ctx, incidentsPage, command, "")
		}
	}
	return nil
}

const incidentsPage = "docs/operate/incidents.md"

// words returns the words of a command, without those of the placeholders.
func words(format string, args ...any) func() []string {
	return func() []string { return strings.Fields(fmt.Sprintf(format, args...)) }
}

// placeholder is what a page leaves open, or a value that stands for any other.
var placeholder = regexp.MustCompile(`\b(TEAM|KEY_ID|REJECT_ID|SEQUENCE|FILE|PID|NAME|SIZE|2026-01-31T08:00:00Z)\b`)

// checkCommands finds the commands of the pages that the trial did not run.
func (e *env) checkCommands() error {
	files, err := filepath.Glob(filepath.Join(e.options.Root, "docs/operate/runbooks/*.md"))
	if err != nil {
		return fmt.Errorf("listing the runbooks: %w", err)
	}
	for _, name := range append(files, filepath.Join(e.options.Root, incidentsPage)) {
		text, err := os.ReadFile(name) //nolint:gosec // A page of the repository.
		if err != nil {
			return fmt.Errorf("reading a page: %w", err)
		}
		for _, command := range commandsOf(string(text)) {
			if elsewhere[command] == "" && !e.ran(command) {
				e.Unexpected("%s: nothing ran %s", filepath.Base(name), command)
			}
		}
	}
	return nil
}

// ran reports whether the trial ran a command of a page, with any values for its placeholders.
func (e *env) ran(command string) bool {
	pattern := placeholder.ReplaceAllString(regexp.QuoteMeta(command), `\S+`)
	match := regexp.MustCompile("^" + strings.ReplaceAll(pattern, " ", "[ =]") + "( .*)?$")
	return slices.ContainsFunc(e.commands, match.MatchString)
}
