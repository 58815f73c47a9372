package workload

import (
	"context"

	"golang.org/x/sync/errgroup"

	"roomsensor/bench/load"
	"roomsensor/bench/report"
)

// askRate is how many pages and how many snapshots are asked for a second: some hundred clients, idle most of the time.
const askRate = 40

// latency is W8: the slowest hundredth of pages and snapshots while uploads come at half the rate that W6 measured,
// against the same while none come.
func (s *suite) latency(ctx context.Context) error {
	targets := s.targets(s.fleet.Deep, s.fleet.Days*bucketsADay)
	if err := s.checkPages(ctx, targets); err != nil {
		return err
	}
	asks := []struct {
		name string
		do   asking
		idle report.Sample
		busy report.Sample
	}{
		{name: "page of 1,000 readings", do: func(ctx context.Context, v *visitor, n int) error {
			return s.getPage(ctx, v, targets[n%len(targets)])
		}},
		{name: "/devices/current", do: s.getCurrent},
	}
	for range s.Rounds {
		for i := range asks {
			idle, busy, err := s.latencies(ctx, asks[i].do)
			if err != nil {
				return err
			}
			asks[i].idle, asks[i].busy = append(asks[i].idle, idle), append(asks[i].busy, busy)
		}
	}
	for _, a := range asks {
		s.add(report.Row{
			ID: "W8", Workload: "p99 of " + a.name + " under uploads", Kind: report.Growth, Unit: "s", Ours: a.busy,
			Against: "the same, idle", Bar: a.idle, Reach: 3, Aim: 1.5,
		})
	}
	return nil
}

// latencies are the p99, in seconds, idle and under uploads.
func (s *suite) latencies(ctx context.Context, do asking) (idle, busy float64, err error) {
	if idle, err = s.p99(ctx, do); err != nil {
		return 0, 0, err
	}
	group, grouped := errgroup.WithContext(ctx)
	group.Go(s.under(grouped, 0.5, s.LoadTime*5/4))
	group.Go(func() (err error) {
		busy, err = s.p99(grouped, do)
		return err
	})
	if err := group.Wait(); err != nil {
		return 0, 0, err //nolint:wrapcheck // Wrapped above.
	}
	return idle, busy, s.queue.Drained(ctx)
}

func (s *suite) p99(ctx context.Context, do asking) (float64, error) {
	all := &crowd{suite: s}
	ask := func(ctx context.Context, _, n int) error {
		return all.with(func(v *visitor) error { return do(ctx, v, n) })
	}
	if _, err := load.Open(ctx, askRate, s.LoadTime/4, ask); err != nil { // To get warm.
		return 0, err
	}
	result, err := load.Open(ctx, askRate, s.LoadTime, ask)
	if err != nil {
		return 0, err
	}
	return result.Quantile(0.99).Seconds(), nil
}
