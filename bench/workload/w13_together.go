package workload

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"roomsensor/bench/load"
	"roomsensor/bench/report"
)

const (
	// turnRate is the number of requests per second for snapshots in W13. 1,000 teams then have 5 s between two requests.
	turnRate = 200
	// singleUploadRate is the number of uploads per second in W13.
	singleUploadRate = 1000
)

// together is W13: the p99 of the snapshots of W12 and of the uploads of W11 at the same time, each at a constant rate,
// compared with the p99 of each alone at that rate.
func (s *Suite) together(ctx context.Context) error {
	var alone, both tails
	for round := range s.Rounds + 1 {
		if round == 1 { // The first round warms up.
			alone, both = tails{}, tails{}
		}
		for _, part := range []struct {
			tails              *tails
			snapshots, uploads bool
		}{{&alone, true, false}, {&alone, false, true}, {&both, true, true}} {
			if err := s.measureTails(ctx, part.tails, part.snapshots, part.uploads); err != nil {
				return err
			}
		}
	}
	for _, row := range []struct {
		name          string
		both, alone   report.Sample
		reach, target float64
	}{
		{fmt.Sprintf("p99 of /devices/current at %.3g/s", s.turnRate()), both.snapshots, alone.snapshots, 5, 2},
		{fmt.Sprintf("p99 of uploads at %d/s", singleUploadRate), both.uploads, alone.uploads, 5, 2},
		{"the same until the commit", both.commits.p99, alone.commits.p99, 0, 0},
	} {
		s.Add(report.Row{
			ID: "W13", Workload: row.name + ", both together", Kind: report.Growth, Unit: "s", Ours: row.both,
			Against: "each alone", Baseline: row.alone, Minimum: row.reach, Target: row.target,
		})
	}
	return nil
}

// turnRate returns the rate of the snapshots, which is lower for few teams.
func (s *Suite) turnRate() float64 {
	return min(turnRate, float64(s.Teams)/max(s.TeamPause.Seconds(), time.Millisecond.Seconds()))
}

// tails are p99 in seconds, per round.
type tails struct {
	snapshots, uploads report.Sample
	commits            visibility
}

// measureTails runs one or both of the open loops for a time, and waits until the uploads are stored.
func (s *Suite) measureTails(ctx context.Context, to *tails, snapshots, uploads bool) error {
	if err := s.teams.rest(ctx, s.TeamPause); err != nil {
		return err
	}
	client, sent := load.NewClient(), &sending{teams: s.teams}
	defer client.CloseIdle()
	group, grouped := errgroup.WithContext(ctx)
	if snapshots {
		group.Go(p99Of(grouped, s.turnRate(), teamConnections, s.LoadTime, &to.snapshots,
			func(ctx context.Context, _, _ int) error {
				return s.teams.get(ctx, client, "/devices/current", s.TeamDevices*minDeviceBytes)
			}))
	}
	if uploads {
		upload, began := sent.uploader(client), time.Now()
		group.Go(p99Of(grouped, singleUploadRate, SingleConnections, s.LoadTime, &to.uploads,
			func(ctx context.Context, _, n int) error {
				return upload(ctx, began.Add(time.Duration(n)*time.Second/singleUploadRate))
			}))
	}
	err := group.Wait()
	s.teams.idle = time.Now()
	if err != nil || !uploads {
		return err //nolint:wrapcheck // Wrapped by load.
	}
	if err := s.teams.queue.AwaitDrained(ctx); err != nil {
		return err
	}
	return sent.check(ctx, &to.commits)
}

// p99Of returns a function that runs an open loop and appends its p99.
func p99Of(
	ctx context.Context, rate float64, connections int, d time.Duration, to *report.Sample, do load.Request,
) func() error {
	return func() error {
		result, err := load.Open(ctx, rate, d, load.Limited(connections, do))
		if err == nil {
			*to = append(*to, result.Quantile(0.99).Seconds())
		}
		return err
	}
}
