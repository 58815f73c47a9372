package workload

import (
	"context"
	"fmt"
	"time"

	"roomsensor/bench/bar"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
)

// load is P1: some days of every device, from the first request until all of it can be read. The service stores
// what is acknowledged on disk twice, in the stream and in the table, and merges what is there already.
func (r *rival) load(ctx context.Context) error {
	ours, theirs, err := r.suite.contest(ctx, r.suite.uploadRate, r.loadRate)
	if err != nil {
		return err
	}
	rows := r.suite.UploadDays * bucketsADay * r.suite.fleet.Devices
	r.add(report.Row{
		ID: "P1", Workload: fmt.Sprintf("load of %d readings", rows), Unit: "rows/s", Ours: ours, Bar: theirs,
		Note: r.Lacks(),
	})
	return nil
}

func (r *rival) loadRate(ctx context.Context) (float64, error) {
	w := roomsensor.Window{From: r.past.AddDate(0, 0, -r.suite.UploadDays), To: r.past}
	r.past = w.From
	bodies, rows := r.suite.lines(w, r.suite.fleet.Devices)
	began := time.Now()
	if err := r.store(ctx, bodies); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return float64(rows) / took.Seconds(), r.counted(ctx, w, rows)
}

// store has all lines taken and readable.
func (r *rival) store(ctx context.Context, bodies [][]byte) error {
	if err := r.sender.postAll(ctx, bodies); err != nil {
		return err
	}
	return r.Settle(ctx)
}

func (r *rival) counted(ctx context.Context, w roomsensor.Window, want int) error {
	stored, err := r.Count(ctx, w)
	if err != nil || stored != want {
		return fmt.Errorf("%d of %d readings are stored: %w", stored, want, err)
	}
	return nil
}

// fill gives the peer the history of the fleet, day by day.
func (r *rival) fill(ctx context.Context) error {
	f, began := r.suite.fleet, time.Now()
	for from := f.From(); from.Before(f.Until); from = from.Add(day) {
		bodies, _ := r.suite.lines(roomsensor.Window{From: from, To: from.Add(day)}, f.Present(from))
		if err := r.store(ctx, bodies); err != nil {
			return err
		}
	}
	rows := f.Rows(f.From(), f.Until)
	r.suite.Say("loaded %d readings into %s in %.1f s", rows, r, time.Since(began).Seconds())
	return r.counted(ctx, roomsensor.Window{From: f.From(), To: f.Until}, rows)
}

// linesOfABody are as many as peers take best.
const linesOfABody = 10_000

// lines is what the first devices of the fleet measured in a window, device by device, as bodies of requests.
func (s *suite) lines(w roomsensor.Window, devices int) (bodies [][]byte, rows int) {
	var body []byte
	for i := range devices {
		id := s.fleet.DeviceID(i)
		for at := w.From; at.Before(w.To); at = at.Add(roomsensor.BucketLength) {
			reading := s.fleet.Reading(i, at)
			body = bar.AppendLine(body, id, at, &reading.Values)
			if rows++; rows%linesOfABody == 0 {
				bodies, body = append(bodies, body), nil
			}
		}
	}
	if len(body) > 0 {
		bodies = append(bodies, body)
	}
	return bodies, rows
}
