package workload

import (
	"context"

	"roomsensor/bench/bar"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
)

// page is P3: the pages of W2.
func (r *rival) page(ctx context.Context) error {
	s := r.suite
	targets := s.targets(s.fleet.Deep, s.fleet.Days*bucketsADay)
	if err := s.checkPages(ctx, targets); err != nil {
		return err
	}
	pages := make([]*asked, len(targets))
	for i, t := range targets {
		var err error
		want := func(bar.Cells) bar.Cells { return s.measured([]int{t.device}, t.window) }
		if pages[i], err = r.check(ctx, r.Page(s.fleet.DeviceID(t.device), t.window), want); err != nil {
			return err
		}
	}
	ours, theirs, err := s.contest(ctx,
		func(ctx context.Context) (float64, error) { return s.pageRate(ctx, pageConnections, targets) },
		func(ctx context.Context) (float64, error) {
			return r.closed(ctx, pageConnections, func(connection, n int) *asked {
				return pages[(n*pageConnections+connection)*bucketStride%len(pages)]
			})
		})
	if err != nil {
		return err
	}
	r.add(report.Row{
		ID: "P3", Workload: "page of 1,000 readings, 4 connections", Layout: s.layout, Unit: "/s", Ours: ours, Bar: theirs,
	})
	return nil
}

// measured is what some devices measured in a window.
func (s *suite) measured(devices []int, w roomsensor.Window) bar.Cells {
	cells := bar.Cells{}
	for _, i := range devices {
		id := s.fleet.DeviceID(i)
		for at := w.From; at.Before(w.To); at = at.Add(roomsensor.BucketLength) {
			reading := s.fleet.Reading(i, at)
			cells.Add(id, at, &reading.Values)
		}
	}
	return cells
}
