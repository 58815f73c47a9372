package workload

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"roomsensor/bench/baseline"
	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
)

const (
	// SingleConnections is the number of connections of W11.
	SingleConnections = 64
	// pgbenchConnections is the number of connections of its baseline.
	pgbenchConnections = 16
)

// single is W11: uploads of one reading each, from the receiver to the commit, compared with pgbench's own script,
// which also has one synced commit per transaction.
func (s *Suite) single(ctx context.Context) error {
	updates, err := s.simpleUpdates(ctx)
	if err != nil {
		return err
	}
	v := &visibility{}
	name := fmt.Sprintf("uploads of one reading, %d devices of %d teams, %d connections",
		s.teams.Fleet.Devices, s.teams.Number, SingleConnections)
	rate := func(ctx context.Context) (float64, error) { return s.singleRate(ctx, v) }
	ours, theirs, err := s.Compare(ctx, rate, updates)
	if err != nil {
		return err
	}
	s.Add(report.Row{
		ID: "W11", Workload: name, Unit: "/s", Ours: ours, Against: "pgbench -N, 16 connections", Baseline: theirs,
		Minimum: 1, Target: 1.7,
	})
	s.addVisible(v)
	if s.peers == nil {
		return nil
	}
	return s.singleBesideRival(ctx, name)
}

// addVisible adds the rows of the times until the commit. The first round warms up.
func (s *Suite) addVisible(v *visibility) {
	s.Add(report.Row{
		ID: "W11", Workload: "the same: p50 from the request to the commit", Kind: report.Bound, Unit: "s",
		Ours: v.p50[1:], Against: v.against(),
	})
	s.Add(report.Row{
		ID: "W11", Workload: "the same: p99 from the request to the commit", Kind: report.Bound, Unit: "s",
		Ours: v.p99[1:], Against: v.against(),
	})
}

// singleBesideRival is W11 with another program beside it.
func (s *Suite) singleBesideRival(ctx context.Context, name string) error {
	rival, err := s.peers.Points(ctx, s)
	if err != nil {
		return err
	}
	defer rival.Stop()
	rate := func(ctx context.Context) (float64, error) { return s.singleRate(ctx, &visibility{}) }
	ours, theirs, err := s.Compare(ctx, rate, rival.Run)
	if err != nil {
		return err
	}
	s.Add(report.Row{
		ID: "W11", Workload: name + ", beside " + rival.Name, Unit: "/s", Ours: ours,
		Against: rival.Name + ", one point per request, synced", Baseline: theirs, Minimum: 1,
	})
	return nil
}

// simpleUpdates returns the baseline of W11, in tables of its own on the same server, or nil without pgbench.
func (s *Suite) simpleUpdates(ctx context.Context) (Side, error) {
	path, ok := s.findTool(baseline.PGBenchProgram)
	if !ok {
		return nil, nil //nolint:nilnil // A row without a baseline.
	}
	database, err := s.CreateDatabase(ctx, s.Server.URL)
	if err != nil {
		return nil, err
	}
	if err := baseline.CreatePGBenchTables(ctx, path, database); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (float64, error) {
		return baseline.SimpleUpdates(ctx, path, database, pgbenchConnections, s.Time)
	}, nil
}

// visibility has the times from requests to the commit of their readings, per round.
type visibility struct {
	p50, p99 report.Sample // seconds
	inexact  bool
}

func (v *visibility) against() string {
	if v.inexact {
		return "time of the write, because the server has track_commit_timestamp off"
	}
	return "time of the commit"
}

// singleRate returns the uploads per second of a round that ends when all are committed.
func (s *Suite) singleRate(ctx context.Context, v *visibility) (float64, error) {
	sent := &sending{teams: s.teams}
	client := load.NewClient()
	defer client.CloseIdle()
	upload := sent.uploader(client)
	began := time.Now()
	_, err := load.Closed(ctx, SingleConnections, s.Time, func(ctx context.Context, _, _ int) error {
		return upload(ctx, time.Now())
	})
	if err != nil {
		return 0, err
	}
	if err := s.teams.queue.AwaitDrained(ctx); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return float64(len(sent.at)) / took.Seconds(), sent.check(ctx, v)
}

// sending has the times at which uploads of one reading were due.
type sending struct {
	teams *teams
	mu    sync.Mutex
	at    map[int]time.Time // by the number of the upload
}

// uploader returns a function that sends an upload and records when it was due.
func (u *sending) uploader(client *load.Client) func(ctx context.Context, due time.Time) error {
	upload := u.teams.uploader(client)
	u.at = map[int]time.Time{}
	return func(ctx context.Context, due time.Time) error {
		n, err := upload(ctx)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.at[n] = due
		return err
	}
}

// check returns an error unless every reading is stored, and adds the times until they were committed.
func (u *sending) check(ctx context.Context, v *visibility) error {
	t := u.teams
	last, _ := t.bucket(int(t.sent.Load()))
	first := last
	for n := range u.at {
		if at, _ := t.bucket(n); at.Before(first) {
			first = at
		}
	}
	commits, exact, err := t.Commits(ctx, roomsensor.Window{From: first, To: last.Add(roomsensor.BucketLength)})
	if err != nil {
		return err
	}
	var latencies []float64
	for i := range commits {
		c := &commits[i]
		n := int(c.BucketAt.Sub(t.since)/roomsensor.BucketLength)*t.Fleet.Devices + t.numbers[c.DeviceID]
		if at, ok := u.at[n]; ok { // Otherwise an earlier round sent it.
			latencies = append(latencies, c.At.Sub(at).Seconds())
		}
	}
	if len(latencies) != len(u.at) {
		return fmt.Errorf("%w: %d of %d readings", errBody, len(latencies), len(u.at))
	}
	slices.Sort(latencies)
	v.p50, v.p99 = append(v.p50, quantile(latencies, 0.5)), append(v.p99, quantile(latencies, 0.99))
	v.inexact = !exact
	return nil
}
