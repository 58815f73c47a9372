package service_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/template"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/clientcmd"
	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/service"
	"roomsensor/test/mqtttest"
)

// update rewrites docs/operate/metrics.md.
var update = flag.Bool("update", false, "rewrite the page of metrics")

const metricsPage = "../../docs/operate/metrics.md"

// TestMetricsPage generates the page of metrics and log fields from the registries of running processes and from the
// source, and compares it with the committed one.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	e := newTestEnv(t)
	receiver, worker := e.config(), e.config()
	receiver.NoWorker, worker.NoReceiver = true, true
	e.createStream()
	all := map[string]*metric{}
	for _, p := range []struct {
		name string
		run  func(context.Context, process.Options) error
	}{
		{"API", func(ctx context.Context, o process.Options) error {
			return service.RunAPI(ctx, apiConfig(e.database), o)
		}},
		{"receiver", func(ctx context.Context, o process.Options) error { return service.RunIngest(ctx, receiver, o) }},
		{"dashboard", func(ctx context.Context, o process.Options) error {
			return service.RunDashboard(ctx, dashboardConfig(e.database), o)
		}},
		{"worker", func(ctx context.Context, o process.Options) error { return service.RunIngest(ctx, worker, o) }},
		{"notify", func(ctx context.Context, o process.Options) error {
			return service.RunNotify(ctx, notifyConfig(e.database), o)
		}},
		{"mqtt", func(ctx context.Context, o process.Options) error {
			cfg := mqttConfig(e.database, e.nats.URL, mqtttest.New(t).Address(), uuid.New(), "zigbee2mqtt/+")
			return service.RunMQTT(ctx, cfg, o)
		}},
		{"probe", func(ctx context.Context, o process.Options) error {
			return clientcmd.RunProbe(ctx, probeConfig(), o)
		}},
	} {
		for _, m := range registeredBy(t, p.run) {
			if all[m.Name] == nil {
				all[m.Name] = m
			}
			if !slices.Contains(all[m.Name].Processes, p.name) {
				all[m.Name].Processes = append(all[m.Name].Processes, p.name)
			}
		}
	}
	metrics := make([]*metric, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		metrics = append(metrics, all[name])
	}
	lint(t, metrics)

	var page bytes.Buffer
	functions := template.FuncMap{"join": func(list []string) string { return strings.Join(list, ", ") }}
	source, err := template.New("metrics.md.tmpl").Funcs(functions).ParseFiles("testdata/metrics.md.tmpl")
	require.NoError(t, err)
	require.NoError(t, source.Execute(&page, map[string]any{"Metrics": metrics, "Fields": logFields(t)}))
	if *update {
		require.NoError(t, os.WriteFile(metricsPage, page.Bytes(), 0o644))
	}
	committed, err := os.ReadFile(metricsPage)
	require.NoError(t, err)
	require.Equal(t, string(committed), page.String(), "run go test ./internal/service -run TestMetricsPage -update")
}

// probeConfig configures a probe of a service that does not answer.
func probeConfig() config.Probe {
	_, apiKey, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	_, ingestKey, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	cfg := config.Defaults[config.Probe]()
	cfg.RoomsensorURL, cfg.RoomsensorAPIKey, cfg.IngestKey = "http://127.0.0.1:1", config.Secret(apiKey), config.Secret(ingestKey)
	cfg.OpsAddr = "127.0.0.1:0"
	return cfg
}

// metric is a row of the page.
type metric struct {
	Name, Help, Type, Unit string
	Labels, Processes      []string
	family                 *dto.MetricFamily
}

// recorder is a registry that remembers its collectors, also those that have no time series yet.
type recorder struct {
	*prometheus.Registry
	mu         sync.Mutex
	collectors []prometheus.Collector
}

func (r *recorder) Register(c prometheus.Collector) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.collectors = append(r.collectors, c)
	return r.Registry.Register(c)
}

func (r *recorder) MustRegister(list ...prometheus.Collector) {
	for _, c := range list {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// lastCollector matches what a process registers last.
var lastCollector = regexp.MustCompile("^roomsensor_(keys_expiring|receiver_.*|dashboard_.*|mails_total|mqtt_.*|probe_.*)$")

// registeredBy runs a process until it has read its first figures, and returns its metrics.
func registeredBy(t *testing.T, run func(context.Context, process.Options) error) (list []*metric) {
	t.Helper()
	registry := &recorder{Registry: prometheus.NewRegistry()}
	r := start(t, func(ctx context.Context, o process.Options) error {
		o.Metrics = registry
		return run(ctx, o)
	})
	r.awaitReady()
	require.Eventually(t, func() bool { // The last collectors are registered once the process is ready.
		families, err := registry.Gather()
		require.NoError(t, err)
		return slices.ContainsFunc(families, func(f *dto.MetricFamily) bool {
			return lastCollector.MatchString(f.GetName())
		})
	}, waitTimeout, waitTimeout/1000)
	require.NoError(t, r.end())
	for _, c := range registry.collectors {
		list = append(list, describe(t, c)...)
	}
	return list
}

var description = regexp.MustCompile(
	`fqName: "(roomsensor_[a-z_]+)", help: ("(?:[^"\\]|\\.)*"), unit: "", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// describe returns the metrics of a collector: the type from a time series, which it creates if there is none. Collectors
// of the service itself that have no time series on this edition have gauges.
func describe(t *testing.T, c prometheus.Collector) (list []*metric) {
	t.Helper()
	types := map[string]*dto.Metric{}
	labels := []string{}
	for created := false; !created && len(labels) < 6; labels = append(labels, "x") {
		var err error
		switch v := c.(type) {
		case *prometheus.CounterVec:
			_, err = v.GetMetricWithLabelValues(labels...)
		case *prometheus.GaugeVec:
			_, err = v.GetMetricWithLabelValues(labels...)
		case *prometheus.HistogramVec:
			_, err = v.GetMetricWithLabelValues(labels...)
		}
		created = err == nil
	}
	metrics, descriptions := make(chan prometheus.Metric, 100), make(chan *prometheus.Desc, 100)
	c.Collect(metrics)
	close(metrics)
	for m := range metrics {
		sample := &dto.Metric{}
		require.NoError(t, m.Write(sample))
		types[m.Desc().String()] = sample
	}
	c.Describe(descriptions)
	close(descriptions)
	for d := range descriptions {
		if parts := description.FindStringSubmatch(d.String()); parts != nil {
			list = append(list, newMetric(t, parts[1:], types[d.String()]))
		}
	}
	return list
}

// newMetric makes a metric of name, help, constant labels and variable labels, and of one of its time series, if any.
func newMetric(t *testing.T, parts []string, sample *dto.Metric) *metric {
	t.Helper()
	help, err := strconv.Unquote(parts[1])
	require.NoError(t, err)
	m := &metric{Name: parts[0], Help: help, Type: "gauge", Unit: "number"}
	for _, label := range append(strings.Split(parts[2], ","), strings.Split(parts[3], ",")...) {
		if name, _, _ := strings.Cut(label, "="); name != "" {
			m.Labels = append(m.Labels, "`"+name+"`")
		}
	}
	kind := dto.MetricType_GAUGE
	switch {
	case sample.GetHistogram() != nil:
		kind, m.Type = dto.MetricType_HISTOGRAM, "histogram"
		bounds := sample.GetHistogram().GetBucket()
		m.Help += fmt.Sprintf(" Buckets from %g to %.5g.", bounds[0].GetUpperBound(), bounds[len(bounds)-1].GetUpperBound())
	case sample.GetCounter() != nil:
		kind, m.Type = dto.MetricType_COUNTER, "counter"
	}
	base := strings.TrimSuffix(m.Name, "_total")
	switch {
	case strings.HasSuffix(base, "_timestamp_seconds"):
		m.Unit = "Unix time"
	case strings.HasSuffix(base, "_seconds"):
		m.Unit = "seconds"
	case strings.HasSuffix(base, "_bytes"):
		m.Unit = "bytes"
	case strings.HasPrefix(help, "1 while"):
		m.Unit = "0 or 1"
	}
	if sample == nil {
		sample = &dto.Metric{Gauge: &dto.Gauge{Value: new(float64)}}
	}
	m.family = &dto.MetricFamily{Name: &m.Name, Help: &help, Type: &kind, Metric: []*dto.Metric{sample}}
	return m
}

// lint checks the names and help texts by the rules of Prometheus, and that no label is unbounded.
func lint(t *testing.T, metrics []*metric) {
	t.Helper()
	families := make([]*dto.MetricFamily, len(metrics))
	for i, m := range metrics {
		families[i] = m.family
		require.Regexp(t, `^[A-Z0-9].*\.$`, m.family.GetHelp(), m.Name)
		for _, label := range m.Labels {
			require.NotRegexp(t, "team|device|key_|unit|hardware|path|url", label, m.Name)
		}
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}

// field is a field of the log, with the processes that write it.
type field struct{ Name, Meaning, Where string }

// fieldMeanings are the meanings of all fields of the log.
var fieldMeanings = map[string]string{
	"bytes":                     "payload of a request or of a batch in bytes",
	"chunk":                     "name of a chunk of the readings",
	"chunks":                    "chunks of all tables",
	"client":                    "address of the client of a request that failed",
	"code":                      "[error code](../errors.md) of the response",
	"config":                    "the configuration, by flag, without passwords",
	"created":                   "creation time of the stream",
	"delay_ms":                  "`DRAIN_DELAY` in milliseconds",
	"detail":                    "what Go's HTTP server reports about a connection that failed",
	"device_id":                 "id of a device",
	"measured_at":               "time of a reading",
	"deliveries":                "times that an upload was delivered to workers",
	"dependency":                "what the process needs: database, queue, ingest keys, worker, sources or broker",
	"duration_ms":               "duration in milliseconds",
	"edition":                   "edition of TimescaleDB",
	"error":                     "cause of the failure; of a request that the client caused, the message that it received",
	"unit":                      "hardware id of the unit that sent an upload, or the id of the source of a message",
	"keep":                      "`REJECTS_KEEP`",
	"from":                      "log level before a change",
	"to":                        "log level after a change",
	"key_id":                    "id of the API key or ingest key of a request",
	"kind":                      "kind of a mail",
	"level":                     "`debug`, `info`, `warn` or `error`",
	"limit":                     "[the limit](../development.md#find-the-cause-of-a-503) that refused a request",
	"mail":                      "id of a mail",
	"max_bytes":                 "limit of the size of rejects in bytes",
	"max_locks_per_transaction": "the setting of the database server",
	"message":                   "what happened",
	"messages":                  "messages of the stream",
	"method":                    "HTTP method of a request",
	"needed":                    "value that `max_locks_per_transaction` needs",
	"param":                     "parameter or field of a request that is wrong",
	"team_id":                   "team whose readings were deleted",
	"team_ids":                  "teams whose stored uploads were purged early; the nil id is that of uploads without a team",
	"path":                      "path of a request that was not found",
	"process":                   "process inside the demo: api, ingest, dashboard or notify",
	"readings":                  "readings of a batch, or readings that were deleted",
	"reason":                    "why a dependency is unavailable, a chunk was not rewritten, a mail was not sent, or an MQTT message was dropped",
	"rejects":                   "rejects of a batch, or rejects that were deleted",
	"request_id":                "id of a request, as in `X-Request-Id` and `error.request_id`",
	"route":                     "template of the route of a request, never its URL, or `unmatched`",
	"rows":                      "items of a response, or uploads of a request",
	"stack":                     "stack of a panic, which is a bug",
	"status":                    "status of the response; 499 if the client left",
	"source_id":                 "id of the source of an MQTT message",
	"standby":                   "host and port of a standby of `READ_DATABASE_URL`",
	"stream_sequence":           "sequence of an upload in the stream",
	"time":                      "time of the line",
	"topic":                     "topic of an MQTT message that was dropped",
	"timescaledb":               "version of TimescaleDB",
	"samples":                   "samples that were deleted",
	"sample":                    "number of fast successful requests for which the line stands, with `LOG_ACCESS_SAMPLE`",
	"trace_id":                  "id of the [trace](tracing.md) of a request or of a batch, if the process exports traces",
	"uploads":                   "uploads of a batch",
	"user_agent":                "`User-Agent` of a request that failed",
	"user_id":                   "id of the person who is signed in to the dashboard",
	"version":                   "version of roomsensor",
}

var accessField = regexp.MustCompile(`\{"([a-z_]+)", (e\.|string\(e\.)`)

// logFields returns the fields that the processes log. The test fails for one without a meaning, and for a meaning
// without a field.
func logFields(t *testing.T) (fields []field) {
	t.Helper()
	found := map[string][]string{}
	add := func(name string, writers ...string) {
		for _, writer := range writers {
			if !slices.Contains(found[name], writer) {
				found[name] = append(found[name], writer)
			}
		}
	}
	for _, name := range []string{"time", "level", "message", "error"} { // zerolog writes them.
		add(name, "all")
	}
	for dir, writers := range map[string][]string{
		"api": {"API"}, "receiver": {"receiver"}, "worker": {"worker"}, "httpedge": {"API", "receiver", "dashboard"}, "demo": {"demo"}, "notify": {"notify"}, "mqtt": {"mqtt"},
		"process": {"all"}, "service": {"all"}, "queue": {"all"}, "store": {"all"},
	} {
		for _, name := range fieldsOf(t, dir) {
			add(name, writers...)
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(fieldMeanings)), slices.Collect(maps.Keys(found)),
		"give each field of the log a meaning in fieldMeanings")
	for _, name := range slices.Sorted(maps.Keys(found)) {
		where := strings.Join(slices.Sorted(slices.Values(found[name])), ", ")
		if slices.Contains(found[name], "all") {
			where = "all"
		}
		fields = append(fields, field{name, fieldMeanings[name], where})
	}
	return fields
}

// fieldsOf returns the fields that a package logs.
func fieldsOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range accessField.FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		require.NoError(t, err)
		for name := range loggedIn(parsed) {
			if !strings.Contains(name, ".") { // Names with a dot are attributes of spans.
				names = append(names, name)
			}
		}
	}
	return names
}

// loggedIn returns the names of the fields in calls of zerolog.Event's methods, such as Str("route", ...).
func loggedIn(file *ast.File) map[string]bool {
	names := map[string]bool{}
	methods := map[string]bool{}
	for _, method := range []string{
		"Str", "Int", "Int64", "Uint64", "Bool", "Float64", "Dur", "Time", "Stringer", "Bytes", "Object", "AnErr", "Any", "Strs",
	} {
		methods[method] = true
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !methods[selector.Sel.Name] {
			return true
		}
		if literal, ok := call.Args[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			name, err := strconv.Unquote(literal.Value)
			if err == nil {
				names[name] = true
			}
		}
		return true
	})
	return names
}
