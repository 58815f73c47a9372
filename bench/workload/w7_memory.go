package workload

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"roomsensor/bench/ground"
	"roomsensor/bench/report"
	"roomsensor/internal/queue"
)

const (
	mib = 1 << 20
	// exportsAtOnce is as many as run at once, and exportsOfKey as many of one key (decision 32).
	exportsAtOnce = 8
	exportsOfKey  = 4
	// memoryReach and memoryAim are MiB of growth.
	memoryReach, memoryAim = 64, 20
)

// grown is what a process had at most, and that beyond what it had before some work, in MiB.
func grown(service *ground.Service, work func() error) (growth, most float64, err error) {
	before, _, err := service.Memory()
	if err != nil {
		return 0, 0, err
	}
	if err := service.ResetPeak(); err != nil {
		return 0, 0, err
	}
	if err := work(); err != nil {
		return 0, 0, err
	}
	_, peak, err := service.Memory()
	return float64(peak-before) / mib, float64(peak) / mib, err
}

// exportMemory is W7 of the API: 8 of the largest exports at once, in a process that has served nothing else yet.
func (s *suite) exportMemory(ctx context.Context) error {
	long := s.selections()[0]
	var ours, most report.Sample
	for range s.Rounds {
		if err := s.restartAPI(ctx); err != nil {
			return err
		}
		growth, peak, err := grown(s.api, func() error { return s.exportsAtOnce(ctx, long) })
		if err != nil {
			return err
		}
		ours, most = append(ours, growth), append(most, peak)
	}
	s.addMemory(fmt.Sprintf("memory of the API, 8 exports of %d rows at once", s.exportRows(long)), ours, most)
	return nil
}

func (s *suite) restartAPI(ctx context.Context) (err error) {
	if err := s.api.Stop(); err != nil {
		return err
	}
	s.api, err = s.Serve(ctx, "api", nil, "api")
	return err
}

func (s *suite) exportsAtOnce(ctx context.Context, x *selection) error {
	all := s.visitors(exportsAtOnce)
	defer all.close()
	group, ctx := errgroup.WithContext(ctx)
	for i := range exportsAtOnce {
		group.Go(func() error {
			answer, err := all.list[i].get(ctx, x.path())
			if err == nil && answer.Lines != s.exportRows(x)+1 {
				return fmt.Errorf("%w: %d lines", errBody, answer.Lines)
			}
			return err
		})
	}
	return group.Wait() //nolint:wrapcheck // Wrapped above.
}

func (s *suite) addMemory(name string, ours, most report.Sample) {
	row := report.Row{
		ID: "W7", Workload: name, Kind: report.Bound, Unit: "MiB", Ours: ours, Reach: memoryReach, Aim: memoryAim,
		Note: fmt.Sprintf("peak %.0f MiB", most.Median()),
	}
	if s.Reduced {
		row.Reach, row.Aim = 0, 0
	}
	s.add(row)
}

// backlogMemory is W7 of the worker: uploads come faster than it stores them, until all of the backlog is stored.
func (s *suite) backlogMemory(ctx context.Context) (err error) {
	if err := s.worker.Stop(); err != nil {
		return err
	}
	if s.worker, err = s.Serve(ctx, "worker", s.queue.Server, "ingest", "--no-receiver"); err != nil {
		return err
	}
	growth, peak, err := grown(s.worker, func() error { return s.backlog(ctx) })
	if err != nil {
		return err
	}
	rows := s.fleet.Devices * bucketsADay * s.BacklogDays
	name := fmt.Sprintf("memory of a worker, a backlog of %d readings", rows)
	s.addMemory(name, report.Sample{growth}, report.Sample{peak})
	return nil
}

func (s *suite) backlog(ctx context.Context) error {
	whole := s.older(time.Duration(s.BacklogDays) * day)
	for from := whole.From; from.Before(whole.To); from = from.Add(day) {
		part := whole
		part.From, part.To = from, from.Add(day)
		messages := make([]queue.Message, s.fleet.Devices)
		for i := range messages {
			messages[i] = queue.Message{HardwareID: s.fleet.HardwareID(i), Text: s.fleet.Upload(i, part)}
		}
		if _, err := s.queue.Publish(ctx, messages); err != nil {
			return err
		}
	}
	if err := s.queue.Drained(ctx); err != nil {
		return err
	}
	return s.checkStored(ctx, whole)
}
