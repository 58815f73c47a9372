package monitoring_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/dbtest"
	"roomsensor/test/demotest"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

// patience bounds every wait. An alert needs some scrapes, and a worker holds after some refused batches.
const patience = 3 * time.Minute

// notInDemo matches the metrics of an archive of the write-ahead log, of its backups, and of a probe.
var notInDemo = regexp.MustCompile(`roomsensor_wal_archived|pgbackrest_|roomsensor_probe_`)

// TestPrometheus lets a real Prometheus scrape a demo. Every query of dashboards, rules and runbooks has a result, and
// alerts fire for real faults and clear after them, of each source of metrics: the database and the requests, the stored
// batches, the rejects, and the targets. The rules wait a second only before they fire. An alert clears 30 s after its
// fault or later, so that the next fault does not wait for that.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	binary := program(t, "prometheus")
	e := startDemo(t)
	p := startPrometheus(t, binary, e.ops)
	go e.load(t.Context())

	t.Run("every query has a result", func(t *testing.T) {
		for name, list := range queries(t) {
			for _, query := range list {
				if notInDemo.MatchString(query) {
					continue
				}
				require.Eventually(t, func() bool {
					result, err := p.query(t.Context(), query)
					return err == nil && result != "[]"
				}, patience, 500*time.Millisecond, "%s: %s", name, query)
			}
		}
	})
	sql, err := pgx.Connect(t.Context(), e.server)
	require.NoError(t, err)
	defer func() { require.NoError(t, sql.Close(context.WithoutCancel(t.Context()))) }()
	run := func(statement string) {
		t.Helper()
		_, err := sql.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	var team uuid.UUID
	require.NoError(t, sql.QueryRow(t.Context(), "SELECT id FROM teams LIMIT 1").Scan(&team))
	credential, err := harness.InsertIngestKey(t.Context(), sql, team)
	require.NoError(t, err)
	unknown := &unknownUnit{env: e, credential: credential}
	faults := []struct {
		alerts        []string
		fault, repair func()
	}{
		{
			[]string{"RoomsensorDatabaseUnavailable", "RoomsensorNotReady", "RoomsensorBudgetBurnsFast", "RoomsensorDashboardErrors"},
			e.database.Cut, e.database.Restore,
		},
		{
			[]string{"RoomsensorWorkerHolds"},
			func() {
				run(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$`)
				run("CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON readings FOR EACH ROW EXECUTE FUNCTION refuse()")
			},
			func() { run("DROP TRIGGER refuse ON readings") },
		},
		{[]string{"RoomsensorRejectsRise"}, unknown.start, unknown.stop},
		{
			[]string{"RoomsensorAbsent"},
			func() { p.setTargets(t, e.ops[1:]) }, // The first one is that of the API.
			func() { p.setTargets(t, e.ops) },
		},
	}
	for _, f := range faults {
		t.Run(f.alerts[0]+" fires", func(t *testing.T) {
			p.await(t, f.alerts, "inactive") // No other fault may be why they fire.
			f.fault()
			p.await(t, f.alerts, "firing")
			f.repair()
		})
	}
	for _, f := range faults {
		t.Run(f.alerts[0]+" clears", func(t *testing.T) {
			p.await(t, f.alerts, "inactive")
		})
	}
}

// env is a running demo.
type env struct {
	api, receiver, dashboard string // addresses
	key                      string // of the API
	ops                      []string
	server                   string          // URL of the database
	database                 *proctest.Proxy // between the demo and the database
}

// startDemo runs a demo whose devices upload every second.
func startDemo(t *testing.T) *env {
	t.Helper()
	e := &env{server: dbtest.Empty(t).URL}
	var err error
	e.database, err = proctest.NewProxy(t.Context(), e.server)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.database.Close()) })
	for range 4 {
		e.ops = append(e.ops, proctest.Address(t))
	}
	o := demotest.Options(t, e.database.URL)
	o.History, o.Version = 24*time.Hour, "test"
	o.APIOpsAddr, o.IngestOpsAddr, o.DashboardOpsAddr, o.NotifyOpsAddr = e.ops[0], e.ops[1], e.ops[2], e.ops[3]
	d := demotest.Start(t, o)
	e.api, e.receiver, e.dashboard = d.Value(t, "Base URL"), d.Value(t, "Uploads"), d.Value(t, "Dashboard")
	e.key = d.Value(t, "Read-write key")
	return e
}

// load sends requests until ctx ends: snapshots, pages, changes, exports, and some without a key, fewer than the rate
// limit allows.
func (e *env) load(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		address, key := e.api+"/devices/current", e.key
		switch n % 10 {
		case 0:
			address = e.api + "/devices"
		case 1:
			key = ""
		case 2:
			address, key = e.receiver, ""
		case 3, 4:
			address, key = e.dashboard, ""
		case 5:
			address = e.api + "/readings/changes"
		case 6:
			address = e.api + "/readings.csv?last=10m"
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return
		}
		request.Header.Set("Authorization", "Bearer "+key)
		request.Header.Set("Cookie", "roomsensor=unknown") // The dashboard looks it up in the database.
		if response, err := http.DefaultClient.Do(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(1200 * time.Millisecond): // 500 requests in 10 minutes.
		}
	}
}

// unknownUnit sends uploads that become rejects.
type unknownUnit struct {
	*env

	credential string
	cancel     context.CancelFunc
	ended      chan struct{}
}

func (u *unknownUnit) start() {
	ctx, cancel := context.WithCancel(context.Background())
	u.cancel, u.ended = cancel, make(chan struct{})
	go func() {
		defer close(u.ended)
		retry.Every(ctx, 100*time.Millisecond, u.send)
	}()
}

func (u *unknownUnit) stop() {
	u.cancel()
	<-u.ended
}

func (u *unknownUnit) send(ctx context.Context) {
	body := fmt.Sprintf(`{"hardware_id":"dev:1","readings":[{"measured_at":"%s","co2_ppm":400}]}`,
		roomsensor.FormatTime(time.Now().UTC()))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.receiver, strings.NewReader(body))
	if err != nil {
		return
	}
	request.Header.Set("Authorization", "Bearer "+u.credential)
	if response, err := http.DefaultClient.Do(request); err == nil {
		_ = response.Body.Close()
	}
}

var (
	// operator separates the operands of a comparison or a combination of alerts, of which each must have a result. A healthy
	// service has none for the whole.
	operator = regexp.MustCompile(`\s(?:and|or|<|>|==)\s(?:bool\s)?|^absent`)
	// fault is a condition on labels that no series of a healthy service meets.
	fault = regexp.MustCompile(`(status|code)=~"5\.\."`)
	// ofCommunity are the metrics of one edition.
	ofCommunity = regexp.MustCompile(`columnstore|readings_hourly`)
	// ofStandbys are the metrics of READ_DATABASE_URL, which a demo does not have.
	ofStandbys = regexp.MustCompile(`roomsensor_database_standby_`)
	promql     = regexp.MustCompile("(?s)```promql\n(.*?)```")
)

// queries returns what must have a result, by the file.
func queries(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	add := func(name, query string) {
		if ofStandbys.MatchString(query) || ofCommunity.MatchString(query) && dbtest.Edition(t) != "community" {
			return
		}
		all[name] = append(all[name], fault.ReplaceAllString(query, `status!=""`))
	}
	for _, r := range rules(t) {
		if r.Record != "" { // A healthy service has values, such as 0.
			add("rules.yml", r.Expr)
			continue
		}
		addOperands("rules.yml", r.Expr, add)
	}
	for name, list := range panels(t) {
		for _, p := range list {
			for _, target := range p.Targets {
				add(name, target.Expr)
			}
		}
	}
	addRunbooks(t, add)
	return all
}

// addOperands adds the operands of a query that have a metric of roomsensor.
func addOperands(name, query string, add func(name, query string)) {
	for _, operand := range operator.Split(query, -1) {
		operand = strings.TrimPrefix(strings.TrimSpace(operand), "absent")
		if metricName.MatchString(operand) || recorded.MatchString(operand) {
			add(name, balanced(operand))
		}
	}
}

// addRunbooks adds the queries of the runbooks.
func addRunbooks(t *testing.T, add func(name, query string)) {
	t.Helper()
	pages, err := filepath.Glob(docsDir + "/runbooks/*.md")
	require.NoError(t, err)
	for _, name := range pages {
		for _, block := range promql.FindAllStringSubmatch(string(readFile(t, name)), -1) {
			for line := range strings.Lines(block[1]) {
				addOperands(filepath.Base(name), line, add)
			}
		}
	}
}

// balanced adds the parentheses that the end of an operand lost with a comparison inside.
func balanced(query string) string {
	return query + strings.Repeat(")", strings.Count(query, "(")-strings.Count(query, ")"))
}
