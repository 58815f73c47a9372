package monitoring_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/retry"
	"roomsensor/test/proctest"
)

// prometheus is a running Prometheus.
type prometheus struct {
	base    string
	targets string // file
	client  *http.Client
}

var forClause = regexp.MustCompile(`(?m)^        for: .*$`)

// startPrometheus runs a Prometheus with the rules, which scrapes ops addresses and evaluates every second.
func startPrometheus(t *testing.T, binary string, targets []string) *prometheus {
	t.Helper()
	quick := forClause.ReplaceAllString(string(readFile(t, "../../deploy/prometheus/rules.yml")), "        for: 1s")
	// A ratio falls soon after a fault.
	quick = strings.NewReplacer("[5m]", "[30s]", "[15m]", "[30s]", "[30m]", "[30s]", "interval: 1m", "interval: 1s").Replace(quick)
	scrapes, _, found := strings.Cut(string(readFile(t, "../../deploy/prometheus/prometheus.yml")), "    static_configs:")
	require.True(t, found, "the configuration has targets to replace")
	config := strings.ReplaceAll(scrapes, "15s", "1s") + "    file_sd_configs:\n      - files: [targets.json]\n"
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(quick), 0o600))
	address := proctest.Address(t)
	p := &prometheus{
		base: "http://" + address, targets: filepath.Join(dir, "targets.json"), client: &http.Client{Timeout: 10 * time.Second},
	}
	p.setTargets(t, targets)
	process, err := proctest.Start(proctest.Command{Path: binary, Log: t.Output(), Args: []string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "prometheus"), "--web.listen-address=" + address,
	}})
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	require.NoError(t, process.AwaitOK(t.Context(), p.base+"/-/ready"))
	return p
}

// setTargets replaces the ops addresses. Prometheus scrapes them within 5 seconds.
func (p *prometheus) setTargets(t *testing.T, targets []string) {
	t.Helper()
	text, err := json.Marshal([]map[string][]string{{"targets": targets}})
	require.NoError(t, err)
	next := p.targets + ".new" // Prometheus must not read a part of the file.
	require.NoError(t, os.WriteFile(next, text, 0o600))
	require.NoError(t, os.Rename(next, p.targets))
}

// get decodes the field data of a response.
func (p *prometheus) get(ctx context.Context, path string, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+path, nil)
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body := struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   any    `json:"data"`
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		return err
	}
	if body.Status != "success" {
		return fmt.Errorf("asking Prometheus: %s", body.Error)
	}
	return nil
}

// query returns the result of a query as JSON, [] if there is none.
func (p *prometheus) query(ctx context.Context, query string) (string, error) {
	var data struct {
		Result json.RawMessage `json:"result"`
	}
	err := p.get(ctx, "/api/v1/query?query="+url.QueryEscape(query), &data)
	return string(data.Result), err
}

// states returns the states of all alerts: inactive, pending or firing. All rules can be evaluated.
func (p *prometheus) states(t *testing.T) map[string]string {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct {
				Name      string `json:"name"`
				State     string `json:"state"`
				LastError string `json:"lastError"` //nolint:tagliatelle // The name is that of Prometheus.
			} `json:"rules"`
		} `json:"groups"`
	}
	require.NoError(t, p.get(t.Context(), "/api/v1/rules", &data))
	states := map[string]string{}
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			require.Empty(t, rule.LastError, rule.Name)
			states[rule.Name] = rule.State
		}
	}
	return states
}

// await waits until each of some alerts has had a state.
func (p *prometheus) await(t *testing.T, alerts []string, state string) {
	t.Helper()
	for _, alert := range alerts {
		for began := time.Now(); p.states(t)[alert] != state; {
			require.Less(t, time.Since(began), patience, "%s is %s, not %s", alert, p.states(t)[alert], state)
			require.NoError(t, retry.Sleep(t.Context(), 500*time.Millisecond))
		}
	}
}
