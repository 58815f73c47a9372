package workload

import (
	"context"
	"fmt"
	"time"

	"roomsensor/bench/bar"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
)

// latest is P2: the newest reading of every device. The service shows much more in the same answer; peers look at the
// last day alone, and a device that was silent for longer is not there.
func (r *rival) latest(ctx context.Context) error {
	s := r.suite
	if err := s.checkCurrent(ctx); err != nil {
		return err
	}
	q, err := r.check(ctx, r.Latest(roomsensor.Window{From: s.fleet.Until.Add(-day), To: s.fleet.Until}), r.newest)
	if err != nil {
		return err
	}
	ours, theirs, err := s.contest(ctx,
		func(ctx context.Context) (float64, error) { return s.closed(ctx, currentConnections, s.getCurrent) },
		func(ctx context.Context) (float64, error) {
			return r.closed(ctx, currentConnections, func(int, int) *asked { return q })
		})
	if err != nil {
		return err
	}
	r.add(report.Row{
		ID: "P2", Workload: fmt.Sprintf("latest of %d devices, 4 connections", s.fleet.Devices), Layout: s.layout,
		Unit: "/s", Ours: ours, Bar: theirs,
	})
	return nil
}

// newest is the newest readings. Where one lacks a metric, a peer that keeps metrics apart may show the one before.
func (r *rival) newest(got bar.Cells) bar.Cells {
	f, want := r.suite.fleet, bar.Cells{}
	last := f.Until.Add(-roomsensor.BucketLength)
	for i := range f.Devices {
		reading := f.Reading(i, last)
		for _, m := range roomsensor.Metrics {
			cell := bar.Cell{Device: f.DeviceID(i), At: last.Unix(), Metric: m}
			x, ok := reading.Values.Get(m)
			if !ok {
				_, ok = got[cell]
				x = r.before(i, m, last)
			}
			if ok {
				want[cell] = x
			}
		}
	}
	return want
}

// before is what a device measured last of a metric before a bucket.
func (r *rival) before(i int, m roomsensor.Metric, bucket time.Time) float32 {
	f := r.suite.fleet
	for at := bucket; at.After(f.RecentFrom()); {
		at = at.Add(-roomsensor.BucketLength)
		reading := f.Reading(i, at)
		if x, ok := reading.Values.Get(m); ok {
			return x
		}
	}
	return 0
}
