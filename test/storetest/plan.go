package storetest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// Plan is a node of a query plan in the JSON of EXPLAIN.
//
//nolint:tagliatelle // PostgreSQL's names.
type Plan struct {
	Type      string `json:"Node Type"`
	Relation  string `json:"Relation Name"`
	Index     string `json:"Index Name"`
	Direction string `json:"Scan Direction"`
	IndexCond string `json:"Index Cond"`
	Filter    string `json:"Filter"`
	Plans     []Plan `json:"Plans"`
}

// Each calls do for the node and all nodes below it.
func (p *Plan) Each(do func(*Plan)) {
	do(p)
	for i := range p.Plans {
		p.Plans[i].Each(do)
	}
}

// PlanConn is a connection that records the plan of every statement that runs on it, including those within functions.
type PlanConn struct {
	*pgx.Conn
	Plans []*Plan
}

// PlanConn connects to the database.
func (f *Fixture) PlanConn(t testing.TB) *PlanConn {
	t.Helper()
	config, err := pgx.ParseConfig(f.URL)
	require.NoError(t, err)
	p := &PlanConn{}
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		_, text, found := strings.Cut(notice.Message, "plan:\n")
		if !found {
			return
		}
		var explained struct {
			Plan Plan `json:"Plan"` //nolint:tagliatelle // PostgreSQL's name.
		}
		require.NoError(t, json.Unmarshal([]byte(text), &explained), text)
		p.Plans = append(p.Plans, &explained.Plan)
	}
	p.Conn, err = pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close(t.Context()) })
	for _, sql := range []string{
		"LOAD 'auto_explain'", "SET auto_explain.log_nested_statements = on", "SET auto_explain.log_format = json",
		"SET client_min_messages = log", "SET auto_explain.log_min_duration = 0",
	} {
		_, err := p.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	return p
}

// executions is more than the number of executions after which the server may switch to a generic plan.
const executions = 8

// Check calls run several times and passes the plans of its statements to requirePlan.
func (p *PlanConn) Check(t testing.TB, run func(n int) error, requirePlan func(*Plan)) {
	t.Helper()
	for n := range executions {
		p.Plans = nil
		require.NoError(t, run(n))
		require.NotEmpty(t, p.Plans)
		for _, plan := range p.Plans {
			requirePlan(plan)
		}
	}
}
