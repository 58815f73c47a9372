// Package promtest runs a real Prometheus with the rules of deploy/prometheus, for tests and trials of the alerts.
package promtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"roomsensor/test/proctest"
)

// Find returns the path of prometheus or promtool: Debian's below bin/ of the repository root, where `go tool task
// prometheus` unpacks it, or one that is installed.
func Find(root, name string) (path string, err error) {
	path, err = filepath.Abs(filepath.Join(root, "bin/prometheus/usr/bin", name))
	if err == nil {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	if path, err = exec.LookPath(name); err != nil {
		return "", fmt.Errorf("%s is not installed, run `go tool task prometheus`: %w", name, err)
	}
	return path, nil
}

// Options describe a Prometheus that scrapes and evaluates every second.
type Options struct {
	Binary  string   // path of prometheus
	Config  string   // text of deploy/prometheus/prometheus.yml
	Rules   string   // text of the rules
	Dir     string   // for its files
	Targets []string // ops addresses
	Log     io.Writer
}

// Prometheus is a running Prometheus. It is safe for concurrent use.
type Prometheus struct {
	*proctest.Process

	base    string
	targets string // file
	client  *http.Client
}

// Start starts a Prometheus and waits until it is ready. The caller stops it.
func Start(ctx context.Context, o Options) (*Prometheus, error) {
	scrapes, _, found := strings.Cut(o.Config, "    static_configs:")
	if !found {
		return nil, errors.New("the configuration of Prometheus has no targets to replace")
	}
	config := strings.ReplaceAll(scrapes, "15s", "1s") + "    file_sd_configs:\n      - files: [targets.json]\n"
	file := filepath.Join(o.Dir, "prometheus.yml")
	address, err := proctest.FreeAddress()
	if err != nil {
		return nil, err
	}
	p := &Prometheus{
		base: "http://" + address, targets: filepath.Join(o.Dir, "targets.json"),
		client: &http.Client{Timeout: 10 * time.Second},
	}
	err = errors.Join(os.WriteFile(file, []byte(config), 0o600), p.SetTargets(o.Targets),
		os.WriteFile(filepath.Join(o.Dir, "rules.yml"), []byte(o.Rules), 0o600))
	if err != nil {
		return nil, fmt.Errorf("configuring Prometheus: %w", err)
	}
	p.Process, err = proctest.Start(proctest.Command{Path: o.Binary, Log: o.Log, Args: []string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(o.Dir, "prometheus"),
		"--web.listen-address=" + address,
	}})
	if err != nil {
		return nil, err
	}
	if err := p.AwaitOK(ctx, p.base+"/-/ready"); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// SetTargets replaces the ops addresses. Prometheus scrapes them within 5 seconds.
func (p *Prometheus) SetTargets(targets []string) error {
	text, err := json.Marshal([]map[string][]string{{"targets": targets}})
	if err != nil {
		return fmt.Errorf("setting the targets: %w", err)
	}
	next := p.targets + ".new" // Prometheus must not read a part of the file.
	if err := errors.Join(os.WriteFile(next, text, 0o600), os.Rename(next, p.targets)); err != nil {
		return fmt.Errorf("setting the targets: %w", err)
	}
	return nil
}

// get decodes the field data of a response.
func (p *Prometheus) get(ctx context.Context, path string, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+path, nil)
	if err != nil {
		return fmt.Errorf("asking Prometheus: %w", err)
	}
	response, err := p.client.Do(request)
	if err != nil {
		return fmt.Errorf("asking Prometheus: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	var body struct {
		Status string          `json:"status"`
		Error  string          `json:"error"`
		Data   json.RawMessage `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		return fmt.Errorf("reading the answer of Prometheus: %w", err)
	}
	if body.Status != "success" {
		return fmt.Errorf("asking Prometheus: %s", body.Error)
	}
	if err := json.Unmarshal(body.Data, data); err != nil {
		return fmt.Errorf("reading the answer of Prometheus: %w", err)
	}
	return nil
}

// Query returns the result of a query as JSON, [] if there is none.
func (p *Prometheus) Query(ctx context.Context, query string) (string, error) {
	var data struct {
		Result json.RawMessage `json:"result"`
	}
	err := p.get(ctx, "/api/v1/query?query="+url.QueryEscape(query), &data)
	return string(data.Result), err
}

// States returns the states of all alerts: inactive, pending or firing. A rule that cannot be evaluated is an error.
func (p *Prometheus) States(ctx context.Context) (map[string]string, error) {
	var data struct {
		Groups []struct {
			Rules []struct {
				Name      string `json:"name"`
				State     string `json:"state"`
				LastError string `json:"lastError"` //nolint:tagliatelle // The name is that of Prometheus.
			} `json:"rules"`
		} `json:"groups"`
	}
	if err := p.get(ctx, "/api/v1/rules", &data); err != nil {
		return nil, err
	}
	states := map[string]string{}
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			if rule.LastError != "" {
				return nil, fmt.Errorf("evaluating %s: %s", rule.Name, rule.LastError)
			}
			states[rule.Name] = rule.State
		}
	}
	return states, nil
}
