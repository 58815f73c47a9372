package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/google/uuid"

	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/bench/workload"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

// comparison compares VictoriaMetrics, which has the readings of the fleet.
type comparison struct {
	*victoriaMetrics
	*workload.Suite
	sender *workload.Sender
}

// compare adds P3 and P4: what another time-series database does with the same readings. It gives fewer guarantees, so
// that there is no verdict.
func compare(ctx context.Context, s *workload.Suite) error {
	v, err := startVictoriaMetrics(ctx, s)
	if err != nil {
		return err
	}
	defer v.Kill()
	r := &comparison{victoriaMetrics: v, Suite: s, sender: &workload.Sender{
		Client: load.NewClient(), URL: v.url + "/write?precision=s", Status: http.StatusNoContent,
	}}
	for _, part := range []struct {
		row string // empty: all rows need it
		run func(context.Context) error
	}{
		{"", r.fill}, {"", r.awaitIdle}, {"", s.Vacuum}, {"P3", r.page}, {"P4", r.export},
	} {
		if part.row != "" && !s.Measures(part.row) {
			continue
		}
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", v, err)
		}
	}
	return nil
}

const (
	// idleCPU is the maximum processor time per second of an idle peer.
	idleCPU = 50 * time.Millisecond
	// idleTimeout is the maximum time to wait for it.
	idleTimeout = time.Minute
)

// awaitIdle waits until the peer has merged its data, which it does in the background.
func (r *comparison) awaitIdle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, idleTimeout)
	defer cancel()
	before := -idleCPU
	err := retry.Until(ctx, time.Second, func(context.Context) (bool, error) {
		used, err := r.CPU()
		idle := used-before < idleCPU
		before = used
		return idle, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // It is measured anyway.
	}
	return err
}

// addRow adds a row without a verdict.
func (r *comparison) addRow(row report.Row) {
	row.Workload += ", beside " + r.String()
	row.Against = r.String()
	r.Add(row)
}

// checked is a question and the size of its checked answer.
type checked struct {
	*question
	bytes int64
}

// check sends a question once and compares the answer with the fleet.
func (r *comparison) check(ctx context.Context, q *question, wanted Cells) (*checked, error) {
	request, err := q.request(ctx)
	if err != nil {
		return nil, err
	}
	body, err := r.sender.Client.Read(request)
	if err != nil {
		return nil, err
	}
	got, err := q.read(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if !maps.Equal(got, wanted) {
		return nil, fmt.Errorf("%w: %d values instead of %d", errPeer, len(got), len(wanted))
	}
	return &checked{q, int64(len(body))}, nil
}

// sizeTolerance is the allowed difference in bytes to the checked answer: VictoriaMetrics reports its execution time.
const sizeTolerance = 16

// again sends the question and reads the whole answer. The order of series varies, so that hashes would differ.
func (q *checked) again(ctx context.Context, client *load.Client) error {
	request, err := q.request(ctx)
	if err != nil {
		return err
	}
	answer, err := client.Do(request, http.StatusOK)
	if err == nil && max(answer.Bytes-q.bytes, q.bytes-answer.Bytes) > sizeTolerance {
		err = fmt.Errorf("%w: %d bytes instead of %d", errPeer, answer.Bytes, q.bytes)
	}
	return err
}

// rate returns the questions per second in a closed loop.
func (r *comparison) rate(
	ctx context.Context, connections int, which func(connection, n int) *checked,
) (float64, error) {
	client := load.NewClient()
	defer client.CloseIdle()
	result, err := load.Closed(ctx, connections, r.Time, func(ctx context.Context, connection, n int) error {
		return which(connection, n).again(ctx, client)
	})
	if err != nil {
		return 0, err
	}
	return result.Rate(), nil
}

// fill writes the history of the fleet, day by day.
func (r *comparison) fill(ctx context.Context) error {
	f, began := &r.Fleet, time.Now()
	for from := f.From(); from.Before(f.Until); from = from.Add(workload.UploadPart) {
		bodies, _ := r.lines(roomsensor.Window{From: from, To: from.Add(workload.UploadPart)}, f.Present(from))
		if err := r.sender.PostAll(ctx, bodies); err != nil {
			return err
		}
	}
	if err := r.Settle(ctx); err != nil {
		return err
	}
	rows := f.Rows(f.From(), f.Until)
	r.Logf("loaded %d readings into %s in %.1f s", rows, r, time.Since(began).Seconds())
	stored, err := r.Count(ctx, roomsensor.Window{From: f.From(), To: f.Until})
	if err != nil || stored != rows {
		return fmt.Errorf("%d of %d readings are stored: %w", stored, rows, err)
	}
	return nil
}

// linesPerBody is the size that peers recommend.
const linesPerBody = 10_000

// lines returns the readings of the first devices in a window, device by device, as bodies of requests.
func (r *comparison) lines(w roomsensor.Window, devices int) (bodies [][]byte, rows int) {
	var body []byte
	for i := range devices {
		id := r.Fleet.DeviceID(i)
		for at := w.From; at.Before(w.To); at = at.Add(roomsensor.BucketLength) {
			reading := r.Fleet.Reading(i, at)
			body = AppendLine(body, id, at, &reading.Values)
			if rows++; rows%linesPerBody == 0 {
				bodies, body = append(bodies, body), nil
			}
		}
	}
	if len(body) > 0 {
		bodies = append(bodies, body)
	}
	return bodies, rows
}

// page is P3: the pages of W2.
func (r *comparison) page(ctx context.Context) error {
	s := r.Suite
	pages := s.Pages(s.Fleet.Deep, s.Fleet.Days*workload.BucketsPerDay)
	if err := s.CheckPages(ctx, pages); err != nil {
		return err
	}
	questions := make([]*checked, len(pages))
	for i, p := range pages {
		var err error
		want := r.measured([]int{p.Device}, p.Window)
		if questions[i], err = r.check(ctx, r.Page(s.Fleet.DeviceID(p.Device), p.Window), want); err != nil {
			return err
		}
	}
	ours, theirs, err := s.Compare(ctx,
		func(ctx context.Context) (float64, error) { return s.PageRate(ctx, pages) },
		func(ctx context.Context) (float64, error) {
			return r.rate(ctx, workload.PageConnections, func(connection, n int) *checked {
				return questions[(n*workload.PageConnections+connection)*questionStride%len(questions)]
			})
		})
	if err != nil {
		return err
	}
	r.addRow(report.Row{
		ID: "P3", Workload: "page of 1,000 readings, 4 connections", Layout: s.Layout, Unit: "/s", Ours: ours,
		Baseline: theirs,
	})
	return nil
}

// questionStride is prime, so that all questions are used.
const questionStride = 7919

// measured returns the values of some devices in a window.
func (r *comparison) measured(devices []int, w roomsensor.Window) Cells {
	cells := Cells{}
	for _, i := range devices {
		id := r.Fleet.DeviceID(i)
		for at := w.From; at.Before(w.To); at = at.Add(roomsensor.BucketLength) {
			reading := r.Fleet.Reading(i, at)
			cells.Add(id, at, &reading.Values)
		}
	}
	return cells
}

// export is P4: the long exports of W3.
func (r *comparison) export(ctx context.Context) error {
	for _, x := range r.Exports() {
		if x.Shape != "long" {
			continue
		}
		if err := r.exportOne(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

func (r *comparison) exportOne(ctx context.Context, x *workload.Export) error {
	s := r.Suite
	if err := s.CheckExport(ctx, x); err != nil {
		return err
	}
	var named []uuid.UUID
	if len(x.Devices) <= workload.FewDevices { // Otherwise all.
		named = x.Devices
	}
	q, err := r.check(ctx, r.Export(named, x.Window), r.measured(firstOf(len(x.Devices)), x.Window))
	if err != nil {
		return err
	}
	ours, theirs, err := s.Compare(ctx, s.ExportTime(x), q.timed)
	if err != nil {
		return err
	}
	r.addRow(report.Row{
		ID: "P4", Workload: fmt.Sprintf("CSV %s, %d rows", x.Name, x.Rows()), Layout: s.Layout, Kind: report.Time,
		Unit: "s", Ours: ours, Baseline: theirs,
	})
	return nil
}

// timed returns the seconds of a question on a new connection.
func (q *checked) timed(ctx context.Context) (float64, error) {
	client := load.NewClient()
	defer client.CloseIdle()
	began := time.Now()
	err := q.again(ctx, client)
	return time.Since(began).Seconds(), err
}

func firstOf(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}
