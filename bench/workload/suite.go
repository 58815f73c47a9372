// Package workload holds the workloads W1 to W9, each beside its bar, and P1 to P4, beside other databases of time
// series, on one database in one run.
package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/bench/bar"
	"roomsensor/bench/fleet"
	"roomsensor/bench/ground"
	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
)

// Options say how large the workloads are.
type Options struct {
	Fleet   fleet.Fleet   `json:"fleet"`
	Rounds  int           `json:"rounds"`
	Time    time.Duration `json:"time"`    // of one side of a round, of throughput
	Layouts []string      `json:"layouts"` // see AsArrived
	Only    []string      `json:"only"`    // W1 to W9 and P; all when empty

	ExportRows  int           `json:"export_rows"`
	UpsertRows  int           `json:"upsert_rows"`
	UploadDays  int           `json:"upload_days"`  // that every device sends in a round of W6
	BacklogDays int           `json:"backlog_days"` // that every device sends for W7
	LoadTime    time.Duration `json:"load_time"`    // of W8, idle and under load
	Profile     string        `json:"-"`            // directory for profiles and plans; none when empty
	Peers       bool          `json:"peers"`        // Telegraf for W6, and P
	Reduced     bool          `json:"reduced"`      // W7 and W9 are told without a verdict
}

// The physical layouts of the readings.
const (
	// AsArrived interleaves devices by time: each row of a device lies on a page of its own.
	AsArrived = "arrived"
	// Ordered is what `roomsensor maintain` leaves: chunks in the order of their key.
	Ordered = "ordered"
	// Columnstore is what the policy of the Community edition leaves: chunks that ended as columns.
	Columnstore = "columnstore"
)

// Layouts are all of them, in the only order in which one can become the other.
func Layouts() []string { return []string{AsArrived, Ordered, Columnstore} }

// suite is a run under way.
type suite struct {
	*ground.Ground
	Options
	fleet *fleet.Fleet
	team  uuid.UUID
	keys  *ground.Keys
	api   *ground.Service

	queue    *ground.Queue
	worker   *ground.Service
	receiver *ground.Service
	sender   *sender

	layout string
	past   time.Time // before it no readings are stored yet; W6 to W8 go on backwards from there
	rate   float64   // readings a second of W6
	before growth
	rows   []report.Row
}

// Run makes all workloads and returns their rows, in the order of their names.
func Run(ctx context.Context, g *ground.Ground, o Options) ([]report.Row, error) {
	s := &suite{Ground: g, Options: o, fleet: &o.Fleet, layout: AsArrived}
	s.past = s.fleet.From()
	if missing := bar.Missing(); len(missing) > 0 {
		s.Say("no bars of PostgreSQL's tools: %s is not installed", strings.Join(missing, ", "))
	}
	for _, step := range []step{
		{"", s.open},
		{"", s.loadRecent},
		{"W9", s.growthBefore},
		{"", s.loadRest},
		{"W9", s.growthAfter},
		{"", s.reading},
		{"W7", s.exportMemory},
		{"W4", s.patch},
		{"W5", s.upsert},
		{"", s.openQueue},
		{"W6", s.upload},
		{"W8", s.latency},
		{"P", s.besidePeers},
		{"W7", s.backlogMemory},
	} {
		if err := s.do(ctx, step); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(s.rows, func(a, b report.Row) int { return compareIDs(a.ID, b.ID) })
	return s.rows, nil
}

func compareIDs(a, b string) int { return slices.Compare([]byte(a), []byte(b)) }

// step is a part of the run, of a workload or of all.
type step struct {
	of  string
	run func(context.Context) error
}

// do makes a step, if its workload is wanted.
func (s *suite) do(ctx context.Context, step step) error {
	if step.of != "" && len(s.Only) > 0 && !slices.Contains(s.Only, step.of) {
		return nil
	}
	if err := step.run(ctx); err != nil {
		return fmt.Errorf("%s: %w", cmp.Or(step.of, "setting up"), err)
	}
	return nil
}

// open makes the team and starts the API.
func (s *suite) open(ctx context.Context) (err error) {
	if s.team, err = s.Enlist(ctx, s.fleet); err != nil {
		return err
	}
	s.keys = s.Keys(s.team)
	s.api, err = s.Serve(ctx, "api", nil, "api")
	return err
}

// recent is the part of the history that every device has.
func (s *suite) recent() roomsensor.Window {
	return roomsensor.Window{From: s.fleet.RecentFrom(), To: s.fleet.Until}
}

func (s *suite) loadRecent(ctx context.Context) error {
	if err := s.Load(ctx, s.fleet, s.fleet.RecentFrom(), s.fleet.Until); err != nil {
		return err
	}
	return s.Settle(ctx)
}

func (s *suite) loadRest(ctx context.Context) error {
	if err := s.Load(ctx, s.fleet, s.fleet.From(), s.fleet.RecentFrom()); err != nil {
		return err
	}
	return s.Settle(ctx)
}

// reading makes W1 to W3 on every layout. The last one stays for what follows; where W9 alone is wanted, nothing does.
func (s *suite) reading(ctx context.Context) error {
	if slices.Equal(s.Only, []string{"W9"}) {
		return nil
	}
	for _, layout := range s.Layouts {
		if err := s.arrange(ctx, layout); err != nil {
			return err
		}
		for _, step := range []step{{"W1", s.current}, {"W2", s.page}, {"W3", s.export}} {
			if err := s.do(ctx, step); err != nil {
				return err
			}
		}
	}
	return nil
}

// arrange brings the readings into a layout; what comes after this one in Layouts can follow, and nothing else.
func (s *suite) arrange(ctx context.Context, layout string) (err error) {
	s.layout = layout
	began := time.Now()
	switch layout {
	case Ordered:
		err = s.Run(ctx, "maintain", "--after", "1s")
	case Columnstore:
		err = s.Columnstore(ctx, s.ended())
	default:
		return nil
	}
	if err != nil {
		return err
	}
	s.Say("made the layout %s in %.1f s", layout, time.Since(began).Seconds())
	return s.Settle(ctx)
}

// ended is where the chunk of the newest readings begins: those before it have ended.
func (s *suite) ended() time.Time { return ground.ChunkOf(s.fleet.Until.Add(-roomsensor.BucketLength)) }

// add judges a row and keeps it.
func (s *suite) add(r report.Row) {
	r.Judge()
	s.rows = append(s.rows, r)
	s.Say("%s %s (%s): ours %.4g, bar %.4g %s, ratio %.3g: %s", r.ID, r.Workload, r.Layout, r.Ours.Median(),
		r.Bar.Median(), r.Unit, r.Ratios.Median(), r.Verdict)
}

// side is one of the two that are compared; it returns its figure.
type side func(context.Context) (float64, error)

// pgbench is a side that runs a statement as often as it can; nil where there is no pgbench.
func (s *suite) pgbench(statement *bar.Statement, connections int) side {
	if slices.Contains(bar.Missing(), bar.PGBenchProgram) {
		return nil
	}
	return func(ctx context.Context) (float64, error) { return bar.PGBench(ctx, statement, connections, s.Time) }
}

// contest runs both sides in every round, in alternated order, after each has run once to get warm.
func (s *suite) contest(ctx context.Context, ours, bar side) (o, b report.Sample, err error) {
	for round := range s.Rounds + 1 {
		sides, samples := []side{ours, bar}, []*report.Sample{&o, &b}
		if round%2 == 1 {
			slices.Reverse(sides)
			slices.Reverse(samples)
		}
		for i, run := range sides {
			if run == nil {
				continue // There is no bar.
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

// asking makes the n-th request of a client.
type asking func(ctx context.Context, v *visitor, n int) error

// closed is the rate of requests in a closed loop.
func (s *suite) closed(ctx context.Context, connections int, do asking) (float64, error) {
	result, err := s.closedLoop(ctx, connections, s.Time, do)
	if err != nil {
		return 0, err
	}
	return result.Rate(), nil
}

func (s *suite) closedLoop(
	ctx context.Context, connections int, d time.Duration, do asking,
) (*load.Result, error) {
	visitors := s.visitors(connections)
	defer visitors.close()
	return load.Closed(ctx, connections, d, func(ctx context.Context, connection, n int) error {
		return do(ctx, visitors.list[connection], n)
	})
}

var errBody = errors.New("the body is not what is stored")
