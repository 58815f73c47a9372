package store_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// plan is a node of a plan, in the words of EXPLAIN.
//
//nolint:tagliatelle // PostgreSQL's names.
type plan struct {
	Type      string `json:"Node Type"`
	Relation  string `json:"Relation Name"`
	Index     string `json:"Index Name"`
	Direction string `json:"Scan Direction"`
	Plans     []plan `json:"Plans"`
}

// walk calls a function for every node.
func (p *plan) walk(do func(*plan)) {
	do(p)
	for i := range p.Plans {
		p.Plans[i].walk(do)
	}
}

// planned is a connection of which the server tells every plan that it runs,
// those within functions too.
type planned struct {
	*pgx.Conn
	plans []*plan
}

func (f *fixture) planned(t *testing.T) *planned {
	t.Helper()
	config, err := pgx.ParseConfig(f.url)
	require.NoError(t, err)
	p := &planned{}
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		_, text, found := strings.Cut(notice.Message, "plan:\n")
		if !found {
			return
		}
		var told struct {
			Plan plan `json:"Plan"` //nolint:tagliatelle // Likewise.
		}
		require.NoError(t, json.Unmarshal([]byte(text), &told), text)
		p.plans = append(p.plans, &told.Plan)
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

// of runs something and returns its plans.
func (p *planned) of(t *testing.T, run func() error) []*plan {
	t.Helper()
	p.plans = nil
	require.NoError(t, run())
	require.NotEmpty(t, p.plans)
	return p.plans
}

// history gives some devices a month of readings, in the order in which they
// arrive, and the planner its statistics.
func (f *fixture) history(t *testing.T, devices int) []uuid.UUID {
	t.Helper()
	f.exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(2, $2) i`, f.team, devices)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm)
		SELECT d.id, $1::timestamptz + i * INTERVAL '30 minutes', i FROM generate_series(0, 48 * 30 - 1) i, devices d`, exportFrom)
	f.exec(t, "ANALYZE")
	names, err := f.DeviceNames(t.Context(), f.team)
	require.NoError(t, err)
	ids := make([]uuid.UUID, len(names))
	for i := range names {
		ids[i] = names[i].ID
	}
	return ids
}

// often is more than the executions after which the server may go over to a
// plan that does for all parameters.
const often = 8

// A page is a descent of the key, backwards: nothing is sorted, and no chunk is
// read from its start.
func TestPlanOfAPage(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ids := f.history(t, 60)
	conn := f.planned(t)
	for n := range often {
		to := exportFrom.AddDate(0, 0, 30-n)
		for _, p := range conn.of(t, func() error {
			rows, err := conn.Query(t.Context(), db.ReadingPage, ids[n], f.team, to.AddDate(0, 0, -7), to, 100)
			rows.Close()
			return err
		}) {
			requireOnlyKeyScans(t, p, "Backward")
		}
	}
}

// requireOnlyKeyScans holds a plan to reading chunks by their key, in a
// direction, and to sorting nothing.
func requireOnlyKeyScans(t *testing.T, p *plan, direction string) {
	t.Helper()
	scans := 0
	p.walk(func(node *plan) {
		require.NotContains(t, node.Type, "Sort")
		if !strings.HasPrefix(node.Relation, "_hyper_") {
			return
		}
		scans++
		require.Contains(t, []string{"Index Scan", "Index Only Scan"}, node.Type)
		require.True(t, strings.HasSuffix(node.Index, "readings_pkey"), node.Index)
		require.Equal(t, direction, node.Direction)
	})
	require.Positive(t, scans)
}

// The newest readings of a fleet are a descent of the key for each device.
func TestPlanOfTheSnapshot(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ids := f.history(t, 60)
	conn := f.planned(t)
	_, err := conn.Exec(t.Context(), "SET plan_cache_mode = force_custom_plan") // As CurrentDevices sets it.
	require.NoError(t, err)
	for range often {
		for _, p := range conn.of(t, func() error {
			_, err := db.New().ReadingLatestList(t.Context(), conn, db.ReadingLatestListParams{
				TeamID: f.team, DeviceIds: ids, WindowFrom: exportFrom.AddDate(0, 0, 23), WindowTo: roomsensor.Forever,
			})
			return err
		}) {
			requireOnlyKeyScans(t, p, "Backward")
		}
	}
}

// An export of a few devices reads their part of the key, of the chunks that
// its window touches; what it sends is not sorted.
func TestPlanOfAnExport(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ids := f.history(t, 60)
	conn := f.planned(t)
	_, err := conn.Exec(t.Context(), "SET plan_cache_mode = force_custom_plan") // As Export sets it.
	require.NoError(t, err)
	week := roomsensor.Window{From: exportFrom.AddDate(0, 0, 10), To: exportFrom.AddDate(0, 0, 11)}
	args := []any{ids[:3], f.team, week.From, week.To}
	for sql, args := range map[string][]any{
		db.ReadingExport:     args,
		db.ReadingCount:      append(slices.Clone(args), 250_001),
		db.ReadingCountLines: {week.From, ids[:3], f.team, week.To, 250_001},
		db.ReadingExtent:     {week.From, week.To, f.team, ids[:3]},
	} {
		for range often {
			for _, p := range conn.of(t, func() error {
				rows, err := conn.Query(t.Context(), sql, args...)
				rows.Close()
				return err
			}) {
				requireFewChunks(t, p)
			}
		}
	}
}

// Whether a delivery of days meets anything is a descent of the key for each device.
func TestPlanOfTheLookAtADelivery(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ids := f.history(t, 40)
	conn := f.planned(t)
	from := exportFrom.AddDate(0, 0, 40) // Where nothing is, so that nothing ends the search.
	p := db.ReadingAnyParams{DeviceIds: ids[:30], WindowFrom: exportFrom.AddDate(0, 0, 28), WindowTo: from.AddDate(0, 0, 3)}
	for range p.DeviceIds {
		p.FirstAt, p.LastAt = append(p.FirstAt, from), append(p.LastAt, p.WindowTo)
	}
	for range often {
		for _, p := range conn.of(t, func() error {
			met, err := db.New().ReadingAny(t.Context(), conn, p)
			require.False(t, met)
			return err
		}) {
			requireOnlyKeyScans(t, p, "Forward")
		}
	}
}

func requireFewChunks(t *testing.T, p *plan) {
	t.Helper()
	chunks := map[string]bool{}
	p.walk(func(node *plan) {
		require.NotContains(t, node.Type, "Sort")
		if strings.HasPrefix(node.Relation, "_hyper_") {
			require.NotEqual(t, "Seq Scan", node.Type)
			chunks[node.Relation] = true
		}
	})
	require.NotEmpty(t, chunks)
	require.LessOrEqual(t, len(chunks), 2)
}

// A request is counted by keys alone, whatever the size of the tables.
func TestPlanOfTheLimiter(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.exec(t, `INSERT INTO rate_counters SELECT 'key ' || i, 40, 0 FROM generate_series(1, 1000) i`)
	f.exec(t, `INSERT INTO rate_windows SELECT 'key ' || i, j, now() FROM generate_series(1, 1000) i, generate_series(0, 39) j`)
	f.exec(t, "ANALYZE")
	conn := f.planned(t)
	tables := map[string]bool{}
	for range often {
		for _, p := range conn.of(t, func() error {
			_, err := db.New().RateWindowHits(t.Context(), conn, []string{"key 5", "key 7", "key 7"})
			return err
		}) {
			p.walk(func(node *plan) {
				if strings.HasPrefix(node.Relation, "rate_") {
					tables[node.Relation] = true
					require.NotEqual(t, "Seq Scan", node.Type)
				}
			})
		}
	}
	require.Len(t, tables, 2)
}
