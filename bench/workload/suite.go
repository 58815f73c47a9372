package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/bench/baseline"
	"roomsensor/bench/env"
	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/harness"
)

// Suite is a run under way.
type Suite struct {
	*env.Env
	Options
	Layout string // current one
	Sender *Sender

	peers    *Peers // nil if no other programs are measured
	team     uuid.UUID
	keys     *env.Keys
	api      *harness.Process
	queue    *env.Queue
	worker   *harness.Process
	receiver *harness.Process

	teams *teams

	oldest time.Time // start of the stored readings; W6 to W8 upload older ones
	rate   float64   // readings per second of W6
	before growth
	rows   []report.Row
}

// step is a part of a run. Its workload is an id, or a setup.
type step struct {
	workload string
	run      func(context.Context) error
}

// The setups, each of which several workloads need.
const (
	setUpHistory = "setting up the fleet"
	setUpTeams   = "setting up the teams"
)

// Peers are the parts of bench/peers, which imports this package.
type Peers struct {
	Rows   func(context.Context, *Suite) error           // measures P3 and P4
	Points func(context.Context, *Suite) (*Rival, error) // starts the other program of W11
}

// Rival is another program in a row of the service.
type Rival struct {
	Name string
	Run  Side
	Stop func()
}

func (s *Suite) steps() []step {
	return []step{
		{setUpHistory, s.startAPI},
		{setUpHistory, s.loadRecent},
		{"W9", s.growthBefore},
		{setUpHistory, s.loadRest},
		{"W9", s.growthAfter},
		{setUpHistory, s.readAllLayouts},
		{"W7", s.exportMemory},
		{"W4", s.patch},
		{"W5", s.upsert},
		{setUpHistory, s.openQueue},
		{"W6", s.upload},
		{"P", func(ctx context.Context) error { return s.peers.Rows(ctx, s) }},
		{"P8", s.changes},
		{"W8", s.latency},
		{"W7", s.backlogMemory},
		{setUpTeams, s.openTeams},
		{"W11", s.single},
		{"W12", s.manyTeams},
		{"W17", s.coldTeams},
		{"W13", s.together},
		{setUpTeams, s.closeTeams},
		{"W16", s.processor},
		{"W15", s.teamsMemory},
	}
}

// Measure opens an environment, runs the selected workloads, and reports their rows in the order of their ids. If a
// workload fails, the report has the rows of those before it.
func Measure(ctx context.Context, o Options, log io.Writer, peers *Peers) (r *report.Report, err error) {
	began := time.Now()
	r = &report.Report{At: began.UTC().Truncate(time.Second), Commit: commit(ctx), Machine: report.ThisMachine()}
	settings := env.Settings()
	if o.measuresDatabase() {
		settings = env.ObservedSettings()
	} else if o.measuresTeams() {
		settings[env.CommitTimes] = "on"
	}
	e, err := env.Open(ctx, o.DatabaseURL, settings, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx, false)) }()
	info, err := postgres.Describe(ctx, e.Database)
	if err != nil {
		return nil, err
	}
	if err := o.checkServer(info); err != nil {
		return nil, err
	}
	r.Database, r.Edition = info.String()+"; "+e.Server.How, info.Edition
	r.Versions = map[string]string{"go": runtime.Version(), "postgresql": info.PostgreSQL, "timescaledb": info.TimescaleDB}
	if r.Settings, err = e.ActiveSettings(ctx); err != nil {
		return nil, err
	}
	o.Fleet.Until = roomsensor.BucketOf(began.UTC())
	r.Options = o
	r.Rows, err = runSteps(ctx, e, o, peers)
	r.Seconds = time.Since(began).Seconds()
	return r, err
}

// commit describes the measured commit, or returns "unknown" without git.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// runSteps returns the rows of all steps, or with an error those of the steps before it.
func runSteps(ctx context.Context, e *env.Env, o Options, peers *Peers) ([]report.Row, error) {
	s := &Suite{Env: e, Options: o, Layout: AsArrived, peers: peers}
	s.oldest = s.Fleet.From()
	var err error
	for _, step := range s.steps() {
		if err = s.run(ctx, step); err != nil {
			break
		}
	}
	slices.SortStableFunc(s.rows, func(a, b report.Row) int { return cmp.Compare(a.ID, b.ID) })
	return s.rows, err
}

// run runs a step if its workload is selected.
func (s *Suite) run(ctx context.Context, step step) error {
	if !s.selected(step.workload) {
		return nil
	}
	if err := step.run(ctx); err != nil {
		return fmt.Errorf("%s: %w", step.workload, err)
	}
	return nil
}

func (s *Suite) selected(workload string) bool {
	switch workload {
	case setUpHistory:
		return s.measuresFleet()
	case setUpTeams:
		return s.measuresTeams()
	case "P":
		return s.measuresPeers()
	}
	return s.Measures(workload)
}

func (s *Suite) startAPI(ctx context.Context) (err error) {
	if s.team, err = s.InsertTeam(ctx, &s.Fleet); err != nil {
		return err
	}
	s.keys = s.NewKeys(s.team)
	s.api, err = s.Start(ctx, "api", nil, "api")
	return err
}

func (s *Suite) loadRecent(ctx context.Context) error {
	if err := s.Load(ctx, &s.Fleet, s.Fleet.RecentFrom(), s.Fleet.Until); err != nil {
		return err
	}
	return s.Vacuum(ctx)
}

func (s *Suite) loadRest(ctx context.Context) error {
	if err := s.Load(ctx, &s.Fleet, s.Fleet.From(), s.Fleet.RecentFrom()); err != nil {
		return err
	}
	return s.Vacuum(ctx)
}

// readAllLayouts runs W1 to W3 and W14 on every layout. The following workloads use the last one.
func (s *Suite) readAllLayouts(ctx context.Context) error {
	if slices.Equal(s.Only, []string{"W9"}) {
		return nil
	}
	for _, layout := range s.Layouts {
		if err := s.arrange(ctx, layout); err != nil {
			return err
		}
		for _, step := range []step{{"W1", s.current}, {"W2", s.page}, {"W3", s.export}, {"W14", s.cold}} {
			if err := s.run(ctx, step); err != nil {
				return err
			}
		}
	}
	return nil
}

// arrange converts the readings to a layout. Only layouts that are later in Layouts can follow.
func (s *Suite) arrange(ctx context.Context, layout string) (err error) {
	s.Layout = layout
	began := time.Now()
	switch layout {
	case Ordered:
		err = s.Run(ctx, "maintain", "--after", "1s")
	case Columnstore:
		err = s.ConvertToColumnstore(ctx, s.endOfEndedChunks())
	default:
		return nil
	}
	if err != nil {
		return err
	}
	s.Logf("converted to the layout %s in %.1f s", layout, time.Since(began).Seconds())
	return s.Vacuum(ctx)
}

// endOfEndedChunks returns the start of the chunk of the newest readings. The chunks before it have ended.
func (s *Suite) endOfEndedChunks() time.Time {
	return env.ChunkStart(s.Fleet.Until.Add(-roomsensor.BucketLength))
}

// Add evaluates a row and adds it to the report.
func (s *Suite) Add(r report.Row) {
	r.Evaluate()
	s.rows = append(s.rows, r)
	s.Logf("%s %s (%s): ours %.4g, bar %.4g %s, ratio %.3g: %s", r.ID, r.Workload, r.Layout, r.Ours.Median(),
		r.Baseline.Median(), r.Unit, r.Ratios.Median(), r.Verdict)
}

// Side is one side of a comparison. It returns the result of a round.
type Side func(context.Context) (float64, error)

// pgbench returns a side that repeats a statement, or nil if pgbench is not installed.
func (s *Suite) pgbench(statement *baseline.Statement, connections int) Side {
	path, ok := s.findTool(baseline.PGBenchProgram)
	if !ok {
		return nil
	}
	return func(ctx context.Context) (float64, error) {
		return baseline.PGBench(ctx, path, statement, connections, s.Time)
	}
}

// findTool returns the path of one of PostgreSQL's tools. A row has no baseline if its tool is not installed.
func (s *Suite) findTool(name string) (path string, ok bool) {
	path, err := baseline.Find(name)
	if err != nil {
		s.Logf("no baseline: %v", err)
	}
	return path, err == nil
}

// Compare runs both sides in every round, in alternating order, after a round to warm up. The baseline may be nil.
func (s *Suite) Compare(ctx context.Context, ours, theirs Side) (o, b report.Sample, err error) {
	for round := range s.Rounds + 1 {
		sides, samples := []Side{ours, theirs}, []*report.Sample{&o, &b}
		if round%2 == 1 {
			slices.Reverse(sides)
			slices.Reverse(samples)
		}
		for i, run := range sides {
			if run == nil {
				continue
			}
			x, err := run(ctx)
			if err != nil {
				return nil, nil, err
			}
			if round > 0 {
				*samples[i] = append(*samples[i], x)
			}
		}
	}
	return o, b, nil
}

// requestFunc sends the n-th request of a client.
type requestFunc func(ctx context.Context, c *client, n int) error

// medianTime returns the median latency in seconds of requests on one connection, in a closed loop for a time.
func (s *Suite) medianTime(ctx context.Context, d time.Duration, do requestFunc) (float64, error) {
	result, err := s.closedLoop(ctx, 1, d, do)
	if err != nil {
		return 0, err
	}
	return result.Quantile(0.5).Seconds(), nil
}

// closedRate returns the requests per second in a closed loop.
func (s *Suite) closedRate(ctx context.Context, connections int, do requestFunc) (float64, error) {
	result, err := s.closedLoop(ctx, connections, s.Time, do)
	if err != nil {
		return 0, err
	}
	return result.Rate(), nil
}

func (s *Suite) closedLoop(
	ctx context.Context, connections int, d time.Duration, do requestFunc,
) (*load.Result, error) {
	clients := s.newClients(connections)
	defer clients[0].http.CloseIdle()
	return load.Closed(ctx, connections, d, func(ctx context.Context, connection, n int) error {
		return do(ctx, clients[connection], n)
	})
}
