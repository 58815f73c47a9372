package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/bench/bar"
	"roomsensor/bench/load"
	"roomsensor/bench/report"
)

// export is P4: the long exports of W3.
func (r *rival) export(ctx context.Context) error {
	for _, x := range r.suite.selections() {
		if x.shape != "long" {
			continue
		}
		if err := r.exportOne(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

func (r *rival) exportOne(ctx context.Context, x *selection) error {
	s := r.suite
	if err := s.checkExport(ctx, x); err != nil {
		return err
	}
	var named []uuid.UUID
	if len(x.devices) <= fewDevices { // Else all, as in the path.
		named = x.devices
	}
	q, err := r.check(ctx, r.Export(named, x.window), func(bar.Cells) bar.Cells {
		return s.measured(firstOf(len(x.devices)), x.window)
	})
	if err != nil {
		return err
	}
	ours, theirs, err := s.contest(ctx, s.exporting(x), q.timed)
	if err != nil {
		return err
	}
	r.add(report.Row{
		ID: "P4", Workload: fmt.Sprintf("CSV %s, %d rows", x.name, s.exportRows(x)), Layout: s.layout, Kind: report.Time,
		Unit: "s", Ours: ours, Bar: theirs,
	})
	return nil
}

// timed is the seconds that an answer takes, on a connection of its own.
func (a *asked) timed(ctx context.Context) (float64, error) {
	client := load.NewClient(1)
	defer client.CloseIdle()
	began := time.Now()
	err := a.again(ctx, client)
	return time.Since(began).Seconds(), err
}

func firstOf(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}
