package workload

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"roomsensor/bench/env"
	"roomsensor/bench/report"
	"roomsensor/internal/queue"
	"roomsensor/test/harness"
)

const (
	mib = 1 << 20
	// concurrentExports is the maximum number of concurrent exports (decision 32).
	concurrentExports = 8
	// minimumMemory and targetMemory are the limits of growth in MiB.
	minimumMemory, targetMemory = 64, 20
)

// peakMemory returns the peak memory of a process during some work, and its growth from before, in MiB.
func peakMemory(service *harness.Process, work func() error) (growth, peak float64, err error) {
	before, _, err := service.Memory()
	if err != nil {
		return 0, 0, err
	}
	if err := service.ResetPeakMemory(); err != nil {
		return 0, 0, err
	}
	if err := work(); err != nil {
		return 0, 0, err
	}
	_, after, err := service.Memory()
	return float64(after-before) / mib, float64(after) / mib, err
}

// exportMemory is W7 of the API: 8 concurrent exports of the largest size, in a new process.
func (s *Suite) exportMemory(ctx context.Context) error {
	long := s.Exports()[0]
	var ours, peaks report.Sample
	for range s.Rounds {
		if err := s.restartAPI(ctx); err != nil {
			return err
		}
		growth, peak, err := peakMemory(s.api, func() error { return s.exportConcurrently(ctx, long) })
		if err != nil {
			return err
		}
		ours, peaks = append(ours, growth), append(peaks, peak)
	}
	s.addMemory(fmt.Sprintf("memory of the API, 8 exports of %d rows at once", long.Rows()), ours, peaks)
	return nil
}

func (s *Suite) restartAPI(ctx context.Context) (err error) {
	if err := s.api.End(); err != nil {
		return err
	}
	s.api, err = s.Start(ctx, "api", nil, "api")
	return err
}

func (s *Suite) exportConcurrently(ctx context.Context, x *Export) error {
	clients := s.newClients(concurrentExports)
	defer clients[0].http.CloseIdle()
	group, ctx := errgroup.WithContext(ctx)
	for i := range concurrentExports {
		group.Go(func() error {
			answer, err := clients[i].get(ctx, x.path())
			if err == nil && answer.Lines != x.Rows()+1 {
				return fmt.Errorf("%w: %d lines", errBody, answer.Lines)
			}
			return err
		})
	}
	return group.Wait() //nolint:wrapcheck // Wrapped by the functions.
}

func (s *Suite) addMemory(name string, ours, peaks report.Sample) {
	row := report.Row{
		ID: "W7", Workload: name, Kind: report.Bound, Unit: "MiB", Ours: ours, Minimum: minimumMemory, Target: targetMemory,
		Note: fmt.Sprintf("peak %.0f MiB", peaks.Median()),
	}
	if s.Reduced {
		row.Minimum, row.Target = 0, 0
	}
	s.Add(row)
}

// backlogMemory is W7 of the worker: uploads arrive faster than it stores them, until the backlog is stored.
func (s *Suite) backlogMemory(ctx context.Context) (err error) {
	if err := s.worker.End(); err != nil {
		return err
	}
	if s.worker, err = s.Start(ctx, "worker", s.queue, "ingest", "--no-receiver"); err != nil {
		return err
	}
	growth, peak, err := peakMemory(s.worker, func() error { return s.backlog(ctx) })
	if err != nil {
		return err
	}
	rows := s.Fleet.Devices * BucketsPerDay * s.BacklogDays
	name := fmt.Sprintf("memory of a worker, a backlog of %d readings", rows)
	s.addMemory(name, report.Sample{growth}, report.Sample{peak})
	return nil
}

func (s *Suite) backlog(ctx context.Context) error {
	whole := s.older(time.Duration(s.BacklogDays) * day)
	for from := whole.From; from.Before(whole.To); from = from.Add(day) {
		part := whole
		part.From, part.To = from, from.Add(day)
		messages := make([]queue.Message, s.Fleet.Devices)
		for i := range messages {
			messages[i] = queue.Message{HardwareID: s.Fleet.HardwareID(i), Text: s.Fleet.Upload(i, part)}
		}
		if _, err := s.queue.Publish(ctx, messages); err != nil {
			return err
		}
	}
	if err := s.queue.AwaitDrained(ctx); err != nil {
		return err
	}
	return env.CheckStored(ctx, s.Pool, whole, s.Fleet.Devices*BucketsPerDay*s.BacklogDays)
}
