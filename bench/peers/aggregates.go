package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/bench/workload"
	"roomsensor/internal/roomsensor"
)

// hourly is P5: minimum, maximum, mean and count of every metric and hour of one device, all pages.
func (r *comparison) hourly(ctx context.Context) error {
	aggregations := r.Hourly()
	ours, err := r.CheckHourly(ctx, aggregations)
	if err != nil {
		return err
	}
	var questions []*checked
	for _, a := range aggregations {
		device := r.Fleet.DeviceID(a.Devices[0])
		q, err := r.check(ctx, r.Aggregates(&device, a.Window, a.Bucket), r.aggregated(a))
		if err != nil {
			return err
		}
		questions = append(questions, q)
	}
	name := fmt.Sprintf("aggregates of a device, %d hours", aggregations[0].Buckets())
	return r.compareQuery(ctx, "P5", name, ours, questions)
}

// daily is P6: the same for the days of all devices. The answer of the service is a CSV.
func (r *comparison) daily(ctx context.Context) error {
	a := r.Daily()
	ours, err := r.CheckDaily(ctx, a)
	if err != nil {
		return err
	}
	q, err := r.check(ctx, r.Aggregates(nil, a.Window, a.Bucket), r.aggregated(a))
	if err != nil {
		return err
	}
	name := fmt.Sprintf("aggregates of %d devices, %d days, %d readings", len(a.Devices), a.Buckets(),
		r.Fleet.Rows(a.Window.From, a.Window.To))
	return r.compareQuery(ctx, "P6", name, ours, []*checked{q})
}

// coverage is P7: how many values each device has in a day, and its first and last reading. The answer of the service
// contains much more.
func (r *comparison) coverage(ctx context.Context) error {
	ours, err := r.CheckCoverage(ctx)
	if err != nil {
		return err
	}
	q, err := r.check(ctx, r.Coverage(r.CoverageWindow()), func(Cells) Cells { return r.covered() })
	if err != nil {
		return err
	}
	name := fmt.Sprintf("coverage of %d devices, 24 hours", r.Fleet.Devices)
	return r.compareQuery(ctx, "P7", name, ours, []*checked{q})
}

// compareQuery adds a row with the median latency of a query, and with the time of the database for ours.
func (r *comparison) compareQuery(
	ctx context.Context, id, name string, ours *workload.Query, theirs []*checked,
) error {
	o, t, err := r.Compare(ctx, ours.Latency, func(ctx context.Context) (float64, error) {
		return r.latency(ctx, theirs)
	})
	if err != nil {
		return err
	}
	row := report.Row{ID: id, Workload: name, Layout: r.Layout, Kind: report.Time, Unit: "s", Ours: o, Baseline: t}
	if row.Database, err = ours.DatabaseTime(ctx); err != nil {
		return err
	}
	r.addRow(row)
	return nil
}

// latency returns the median seconds of a question on one connection, in a closed loop.
func (r *comparison) latency(ctx context.Context, questions []*checked) (float64, error) {
	client := load.NewClient()
	defer client.CloseIdle()
	result, err := load.Closed(ctx, 1, r.Time, func(ctx context.Context, _, n int) error {
		return questions[n%len(questions)].again(ctx, client)
	})
	if err != nil {
		return 0, err
	}
	return result.Quantile(0.5).Seconds(), nil
}

// meanTolerance is the allowed difference of a mean to the exact one, relative to that: peers compute with 64 bits, and
// from the decimal digits of a value instead of its 32 bits.
const meanTolerance = 1e-6

// aggregated returns what an answer must have, with its own means where they are close enough.
func (r *comparison) aggregated(a *workload.Aggregation) func(got Cells) Cells {
	return func(got Cells) Cells {
		want := Cells{}
		for at, s := range r.Answer(a) {
			cell := func(of string) Cell { return Cell{Device: at.Device, At: at.At, Metric: at.Metric, Of: of} }
			want[cell(Min)], want[cell(Max)], want[cell(Count)] = s.Min, s.Max, float32(s.Count)
			mean := got[cell(Mean)]
			if math.Abs(float64(mean-s.Mean)) > meanTolerance*math.Abs(float64(s.Mean)) {
				mean = s.Mean
			}
			want[cell(Mean)] = mean
		}
		return want
	}
}

// covered returns the coverage of all devices. The counts have no time.
func (r *comparison) covered() Cells {
	cells, w := Cells{}, r.CoverageWindow()
	for i := range r.Fleet.Devices {
		id := r.Fleet.DeviceID(i)
		for m, n := range r.ValueCounts(i) {
			if n > 0 {
				cells[Cell{Device: id, Metric: roomsensor.Metric(m), Of: Count}] = float32(n)
			}
		}
		cells[readingAt(id, w.From, First)] = 1
		cells[readingAt(id, w.To.Add(-roomsensor.BucketLength), Last)] = 1
	}
	return cells
}

func readingAt(device uuid.UUID, at time.Time, of string) Cell {
	return Cell{Device: device, At: at.Unix(), Metric: roomsensor.CO2, Of: of}
}
