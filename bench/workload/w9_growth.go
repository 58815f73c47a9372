package workload

import (
	"context"
	"fmt"

	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
)

// growth contains latencies with a number of rows in the table.
type growth struct {
	rows          int
	page, current report.Sample // medians in seconds
}

// growthBefore measures W9 while the table has only the recent history.
func (s *Suite) growthBefore(ctx context.Context) (err error) {
	s.before, err = s.growth(ctx)
	return err
}

// growthAfter is W9: the same requests with the whole history.
func (s *Suite) growthAfter(ctx context.Context) error {
	after, err := s.growth(ctx)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name          string
		before, after report.Sample
	}{{"page of 1,000 readings", s.before.page, after.page}, {"/devices/current", s.before.current, after.current}} {
		name := fmt.Sprintf("%s, %.3g M rows after %.3g M", part.name, millions(after.rows), millions(s.before.rows))
		row := report.Row{
			ID: "W9", Workload: name,
			Kind: report.Growth, Unit: "s", Ours: part.after, Against: "the same, fewer rows", Baseline: part.before,
			Minimum: 1.5, Target: 1.1,
		}
		if s.Reduced {
			row.Minimum, row.Target = 0, 0
		}
		s.Add(row)
	}
	return nil
}

func millions(n int) float64 { return float64(n) / 1e6 }

func (s *Suite) growth(ctx context.Context) (g growth, err error) {
	err = s.Pool.QueryRow(ctx, "SELECT count(*) FROM readings").Scan(&g.rows)
	if err != nil {
		return g, fmt.Errorf("counting readings: %w", err)
	}
	recent := s.Fleet.Until.Sub(s.Fleet.RecentFrom())
	pages := s.Pages(s.Fleet.Devices, int(recent/roomsensor.BucketLength))
	if err := s.CheckPages(ctx, pages); err != nil {
		return g, err
	}
	g.page, err = s.medians(ctx, func(ctx context.Context, c *client, _ int) error {
		return s.getPage(ctx, c, pages[c.rng.IntN(len(pages))])
	})
	if err != nil {
		return g, err
	}
	g.current, err = s.medians(ctx, s.getCurrent)
	return g, err
}

// medians returns the median latency in seconds of requests on one connection, per round.
func (s *Suite) medians(ctx context.Context, do requestFunc) (list report.Sample, err error) {
	list, _, err = s.Compare(ctx, func(ctx context.Context) (float64, error) {
		return s.medianTime(ctx, s.Time/2, do)
	}, nil)
	return list, err
}
