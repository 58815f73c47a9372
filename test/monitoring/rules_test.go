package monitoring_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const (
	docsDir = "../../docs/operate"
	// runbooksAddress is the address of the runbooks in the rules.
	runbooksAddress = "http://127.0.0.1:8080/docs/operate/runbooks/"
)

// everything says that nothing may be skipped. `go tool task monitoring` sets it.
var everything = os.Getenv("ROOMSENSOR_MONITORING") == "all"

// program returns the path of promtool or prometheus: Debian's below bin/, where `go tool task prometheus` unpacks it, or
// one that is installed.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../bin/prometheus/usr/bin", name))
	require.NoError(t, err)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if path, err = exec.LookPath(name); err != nil {
		require.False(t, everything, err)
		t.Skipf("%s is not installed, run `go tool task prometheus`: %v", name, err)
	}
	return path
}

// rule is an alert, or records the result of a query.
type rule struct {
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// rules reads all rules.
func rules(t *testing.T) (list []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	require.NoError(t, yaml.Unmarshal(readFile(t, "../../deploy/prometheus/rules.yml"), &file))
	for _, group := range file.Groups {
		list = append(list, group.Rules...)
	}
	require.NotEmpty(t, list)
	return list
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return text
}

// Each alert has a severity, a summary, a runbook with the same words, a row in the page on monitoring, and a test.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	page := string(readFile(t, docsDir+"/monitoring.md"))
	tests := string(readFile(t, "../../deploy/prometheus/rules_test.yml"))
	var names []string
	for _, r := range rules(t) {
		if r.Record != "" {
			continue
		}
		names = append(names, r.Alert+".md")
		require.Contains(t, []string{"critical", "warning", "info"}, r.Labels["severity"], r.Alert)
		require.Equal(t, runbooksAddress+r.Alert, r.Annotations["runbook_url"])
		runbook := string(readFile(t, docsDir+"/runbooks/"+r.Alert+".md"))
		after := ", at once."
		if r.For != "" {
			after = ", after " + r.For + "."
		}
		heading := "# " + r.Alert + "\n\n**" + r.Annotations["summary"] + "** Severity: " + r.Labels["severity"] + after + "\n"
		require.Equal(t, heading, runbook[:min(len(heading), len(runbook))])
		require.Contains(t, page, "| ["+r.Alert+"](runbooks/"+r.Alert+".md) | "+r.Labels["severity"]+" | "+r.Annotations["summary"]+" |\n")
		require.GreaterOrEqual(t, strings.Count(tests, "alertname: "+r.Alert+"\n"), 2, "%s fires and clears in rules_test.yml", r.Alert)
	}
	files, err := filepath.Glob(docsDir + "/runbooks/*.md")
	require.NoError(t, err)
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	slices.Sort(names)
	require.Equal(t, names, files)
}

var (
	metricName = regexp.MustCompile(`\broomsensor_[a-z_]+\b`)
	recorded   = regexp.MustCompile(`\broomsensor:[a-z0-9_:]+\b`)
	ofSeries   = regexp.MustCompile(`_(bucket|sum|count)$`)
	fence      = regexp.MustCompile("(?s)```(promql|yaml)\n(.*?)```")
)

// Every metric in rules, dashboards and the queries of pages exists, or a rule records it.
func TestMetricNames(t *testing.T) {
	t.Parallel()
	known := string(readFile(t, docsDir+"/metrics.md"))
	var records []string
	for _, r := range rules(t) {
		records = append(records, r.Record)
	}
	texts := map[string]string{}
	for _, pattern := range []string{"../../deploy/prometheus/*.yml", "../../deploy/grafana/*.json"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, name := range files {
			texts[name] = string(readFile(t, name))
		}
	}
	for _, pattern := range []string{"/*.md", "/runbooks/*.md"} {
		files, err := filepath.Glob(docsDir + pattern)
		require.NoError(t, err)
		for _, name := range files {
			for _, block := range fence.FindAllStringSubmatch(string(readFile(t, name)), -1) {
				texts[name] += block[2]
			}
		}
	}
	for name, text := range texts {
		for _, metric := range metricName.FindAllString(text, -1) {
			require.Contains(t, known, "| `"+ofSeries.ReplaceAllString(metric, "")+"` |", name)
		}
		for _, metric := range recorded.FindAllString(text, -1) {
			require.Contains(t, records, metric, name)
		}
	}
}

// The configuration is valid, with the rules.
func TestConfig(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), program(t, "promtool"), "check", "config", "prometheus.yml")
	cmd.Dir = "../../deploy/prometheus"
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

// The block of the page under Alerts runs as pasted, with the files of a clone: it replaces the address, and checks the
// rules, of which each alert fires and clears for the series of its test. That evaluates all rules for 74 hours, which
// takes promtool 20 s and more. The address may be replaced again.
func TestAlertsBlock(t *testing.T) {
	t.Parallel()
	promtool := program(t, "promtool")
	_, section, found := strings.Cut(string(readFile(t, docsDir+"/monitoring.md")), "\n## Alerts\n")
	require.True(t, found)
	_, block, found := strings.Cut(section, "```sh\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "deploy/prometheus"), os.DirFS("../../deploy/prometheus")))
	absolute, err := filepath.Abs(filepath.Dir(promtool))
	require.NoError(t, err)
	// run returns the rules after some commands.
	run := func(commands string) string {
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + absolute + ":" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(readFile(t, filepath.Join(dir, "deploy/prometheus/rules.yml")))
	}
	replaced := run(block)
	require.NotContains(t, replaced, runbooksAddress)
	replacement, _, found := strings.Cut(block, "\n")
	require.True(t, found)
	require.Equal(t, replaced, run(replacement))
}

// update rewrites the rules for the Prometheus operator.
var update = flag.Bool("update", false, "rewrite deploy/kubernetes/monitoring/rules.yaml")

// The object for the Prometheus operator has the same rules.
func TestPrometheusRule(t *testing.T) {
	t.Parallel()
	const name = "../../deploy/kubernetes/monitoring/rules.yaml"
	_, groups, found := strings.Cut(string(readFile(t, "../../deploy/prometheus/rules.yml")), "\ngroups:\n")
	require.True(t, found)
	want := "# The alerts of deploy/prometheus/rules.yml: go test ./test/monitoring -run TestPrometheusRule -update\n" +
		"apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: roomsensor\nspec:\n  groups:\n"
	for line := range strings.Lines(groups) {
		want += "  " + line
	}
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(want), 0o644))
	}
	require.Equal(t, want, string(readFile(t, name)))
}
