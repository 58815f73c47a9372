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
	"roomsensor/test/proctest"
)

// Suite is a run under way.
type Suite struct {
	*env.Env
	Options
	Layout string // current one
	Sender *Sender

	team     uuid.UUID
	keys     *env.Keys
	api      *proctest.Service
	queue    *env.Queue
	worker   *proctest.Service
	receiver *proctest.Service

	oldest time.Time // start of the stored readings; W6 to W8 upload older ones
	rate   float64   // readings per second of W6
	before growth
	rows   []report.Row
}

// Step is a part of a run. Its Workload is the id of a workload, or empty for a setup that all workloads need.
type Step struct {
	Workload string
	Run      func(context.Context) error
}

// All returns the workloads W1 to W9.
func All(s *Suite) []Step {
	return []Step{
		{"", s.loadRecent},
		{"W9", s.growthBefore},
		{"", s.loadRest},
		{"W9", s.growthAfter},
		{"", s.readAllLayouts},
		{"W7", s.exportMemory},
		{"W4", s.patch},
		{"W5", s.upsert},
		{"", s.openQueue},
		{"W6", s.upload},
		{"W8", s.latency},
		{"W7", s.backlogMemory},
	}
}

// SetUp returns the steps that load the whole history in the last layout and start all processes.
func SetUp(s *Suite) []Step {
	return []Step{{"", s.loadRecent}, {"", s.loadRest}, {"", s.arrangeAll}, {"", s.openQueue}}
}

// Measure opens an environment, runs the steps that steps returns, and reports their rows in the order of their ids.
func Measure(ctx context.Context, o Options, log io.Writer, steps func(*Suite) []Step) (r *report.Report, err error) {
	began := time.Now()
	r = &report.Report{At: began.UTC().Truncate(time.Second), Commit: commit(ctx), Machine: report.ThisMachine()}
	e, err := env.Open(ctx, o.DatabaseURL, log)
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
	r.Rows, err = runSteps(ctx, e, o, steps)
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

func runSteps(ctx context.Context, e *env.Env, o Options, steps func(*Suite) []Step) ([]report.Row, error) {
	s := &Suite{Env: e, Options: o, Layout: AsArrived}
	s.oldest = s.Fleet.From()
	if missing := baseline.Missing(); len(missing) > 0 {
		s.Logf("some rows have no baseline: %s is not installed", strings.Join(missing, ", "))
	}
	var err error
	if s.team, err = s.InsertTeam(ctx, &s.Fleet); err != nil {
		return nil, err
	}
	s.keys = s.NewKeys(s.team)
	if s.api, err = s.Start(ctx, "api", nil, "api"); err != nil {
		return nil, err
	}
	for _, step := range steps(s) {
		if err := s.run(ctx, step); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(s.rows, func(a, b report.Row) int { return cmp.Compare(a.ID, b.ID) })
	return s.rows, nil
}

// run runs a step if its workload is selected.
func (s *Suite) run(ctx context.Context, step Step) error {
	if step.Workload != "" && len(s.Only) > 0 && !slices.Contains(s.Only, step.Workload) {
		return nil
	}
	if err := step.Run(ctx); err != nil {
		return fmt.Errorf("%s: %w", cmp.Or(step.Workload, "setting up"), err)
	}
	return nil
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

// readAllLayouts runs W1 to W3 on every layout. The following workloads use the last one.
func (s *Suite) readAllLayouts(ctx context.Context) error {
	if slices.Equal(s.Only, []string{"W9"}) {
		return nil
	}
	for _, layout := range s.Layouts {
		if err := s.arrange(ctx, layout); err != nil {
			return err
		}
		for _, step := range []Step{{"W1", s.current}, {"W2", s.page}, {"W3", s.export}} {
			if err := s.run(ctx, step); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Suite) arrangeAll(ctx context.Context) error {
	for _, layout := range s.Layouts {
		if err := s.arrange(ctx, layout); err != nil {
			return err
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
	if slices.Contains(baseline.Missing(), baseline.PGBenchProgram) {
		return nil
	}
	return func(ctx context.Context) (float64, error) {
		return baseline.PGBench(ctx, statement, connections, s.Time)
	}
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
