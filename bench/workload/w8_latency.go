package workload

import (
	"context"

	"golang.org/x/sync/errgroup"

	"roomsensor/bench/load"
	"roomsensor/bench/report"
)

// requestRate is the number of requests per second for pages and for snapshots, as of some hundred mostly idle clients.
const requestRate = 40

// latency is W8: the p99 of pages and snapshots while uploads arrive at half the rate of W6, compared with the p99
// without uploads.
func (s *Suite) latency(ctx context.Context) (err error) {
	if s.rate == 0 { // W6 is not selected.
		if s.rate, err = s.uploadRate(ctx); err != nil {
			return err
		}
	}
	pages := s.Pages(s.Fleet.Deep, s.Fleet.Days*BucketsPerDay)
	if err := s.CheckPages(ctx, pages); err != nil {
		return err
	}
	requests := []struct {
		name string
		do   requestFunc
		idle report.Sample
		busy report.Sample
	}{
		{name: "page of 1,000 readings", do: func(ctx context.Context, c *client, n int) error {
			return s.getPage(ctx, c, pages[n%len(pages)])
		}},
		{name: "/devices/current", do: s.getCurrent},
	}
	for range s.Rounds {
		for i := range requests {
			idle, busy, err := s.latencies(ctx, requests[i].do)
			if err != nil {
				return err
			}
			requests[i].idle, requests[i].busy = append(requests[i].idle, idle), append(requests[i].busy, busy)
		}
	}
	for _, a := range requests {
		s.Add(report.Row{
			ID: "W8", Workload: "p99 of " + a.name + " under uploads", Kind: report.Growth, Unit: "s", Ours: a.busy,
			Against: "the same, idle", Baseline: a.idle, Minimum: 3, Target: 1.5,
		})
	}
	return nil
}

// latencies returns the p99 in seconds, idle and under uploads.
func (s *Suite) latencies(ctx context.Context, do requestFunc) (idle, busy float64, err error) {
	if idle, err = s.p99(ctx, do); err != nil {
		return 0, 0, err
	}
	group, grouped := errgroup.WithContext(ctx)
	group.Go(s.uploadsAt(grouped, 0.5, s.LoadTime*5/4))
	group.Go(func() (err error) {
		busy, err = s.p99(grouped, do)
		return err
	})
	if err := group.Wait(); err != nil {
		return 0, 0, err //nolint:wrapcheck // Wrapped by the functions.
	}
	return idle, busy, s.queue.AwaitDrained(ctx)
}

func (s *Suite) p99(ctx context.Context, do requestFunc) (float64, error) {
	idle := make(chan *client, load.MaxOpen) // A client serves one request at a time.
	send := func(ctx context.Context, _, n int) error {
		var c *client
		select {
		case c = <-idle:
		default:
			c = s.newClients(1)[0]
		}
		defer func() { idle <- c }()
		return do(ctx, c, n)
	}
	if _, err := load.Open(ctx, requestRate, s.LoadTime/4, send); err != nil { // To warm up.
		return 0, err
	}
	result, err := load.Open(ctx, requestRate, s.LoadTime, send)
	if err != nil {
		return 0, err
	}
	return result.Quantile(0.99).Seconds(), nil
}
