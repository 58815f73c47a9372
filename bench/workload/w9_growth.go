package workload

import (
	"context"
	"fmt"

	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
)

// growth is what requests take while the table has so many rows.
type growth struct {
	rows          int
	page, current report.Sample // seconds, the median of a round
}

// growthBefore measures W9 while only the recent part of the history is there.
func (s *suite) growthBefore(ctx context.Context) (err error) {
	s.before, err = s.growth(ctx)
	return err
}

// growthAfter is W9: the same requests, once all of the history is there.
func (s *suite) growthAfter(ctx context.Context) error {
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
			Kind: report.Growth, Unit: "s", Ours: part.after, Against: "the same, fewer rows", Bar: part.before,
			Reach: 1.5, Aim: 1.1,
		}
		if s.Reduced {
			row.Reach, row.Aim = 0, 0
		}
		s.add(row)
	}
	return nil
}

func millions(n int) float64 { return float64(n) / 1e6 }

func (s *suite) growth(ctx context.Context) (g growth, err error) {
	err = s.Pool.QueryRow(ctx, "SELECT count(*) FROM readings").Scan(&g.rows)
	if err != nil {
		return g, fmt.Errorf("counting readings: %w", err)
	}
	recent := s.recent()
	targets := s.targets(s.fleet.Devices, int(recent.To.Sub(recent.From)/roomsensor.BucketLength))
	if err := s.checkPages(ctx, targets); err != nil {
		return g, err
	}
	g.page, err = s.medians(ctx, func(ctx context.Context, v *visitor, _ int) error {
		return s.getPage(ctx, v, targets[v.dice.IntN(len(targets))])
	})
	if err != nil {
		return g, err
	}
	g.current, err = s.medians(ctx, s.getCurrent)
	return g, err
}

// medians are the times, in seconds, within which half of the requests on one connection were answered, of each round.
func (s *suite) medians(ctx context.Context, do asking) (list report.Sample, err error) {
	for round := range s.Rounds + 1 {
		result, err := s.closedLoop(ctx, 1, s.Time/2, do)
		if err != nil {
			return nil, err
		}
		if round > 0 {
			list = append(list, result.Quantile(0.5).Seconds())
		}
	}
	return list, nil
}
