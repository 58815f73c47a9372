package workload

import (
	"context"
	"fmt"
	"strings"
	"time"

	"roomsensor/bench/env"
	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
)

// processorParts are the processes of W16. The last one has all processes of the server.
var processorParts = []string{"receiver", "worker", "NATS", "PostgreSQL"}

// processor is W16: the processor time of all processes for uploads of some sizes, from the receiver until all are
// committed. The client is not included.
func (s *Suite) processor(ctx context.Context) error {
	t, err := s.newTeams(ctx, s.Teams, s.TeamDevices)
	if err != nil {
		return err
	}
	t.since = t.Fleet.Until.AddDate(0, 0, -uploadedDays)
	if err := t.startIngest(ctx, "processor"); err != nil {
		return err
	}
	for _, part := range []struct{ readings, uploads int }{
		{1, s.CPUUploads}, {12, s.CPUUploads}, {BucketsPerDay, max(1, s.CPUUploads/24)},
	} {
		parts, err := s.processorTime(ctx, t, part.readings, part.uploads)
		if err == nil && part.readings == 1 {
			err = s.roofline(ctx, t, parts)
		}
		if err != nil {
			return err
		}
	}
	return t.stop()
}

// uploadedDays is the age of the first uploads of W16: enough for a day in each of 20 rounds.
const uploadedDays = 30

// processorTime measures uploads of one size, in rounds, and returns the time of each process.
func (s *Suite) processorTime(
	ctx context.Context, t *teams, readings, uploads int,
) (parts map[string]report.Sample, err error) {
	row := report.Row{
		ID: "W16", Kind: report.Bound, Unit: "s", Parts: map[string]report.Sample{},
		Workload: fmt.Sprintf("CPU per million readings, %d per upload", readings),
	}
	for round := range s.Rounds + 1 {
		times, err := t.uploadTimes(ctx, readings, uploads)
		if err != nil {
			return nil, err
		}
		if round == 0 { // To warm up.
			continue
		}
		sum := 0.0
		for name, used := range times {
			perMillion := used.Seconds() / float64(readings*uploads) * 1e6
			row.Parts[name] = append(row.Parts[name], perMillion)
			sum += perMillion
		}
		row.Ours = append(row.Ours, sum)
	}
	var notes []string
	for _, name := range processorParts {
		if sample, ok := row.Parts[name]; ok {
			notes = append(notes, fmt.Sprintf("%s %.3g", name, sample.Median()))
		} else {
			notes = append(notes, name+" is not on this machine")
		}
	}
	row.Note = strings.Join(notes, ", ")
	s.Add(row)
	return row.Parts, nil
}

// uploadTimes sends uploads of the next buckets, waits until they are stored, and returns the processor times.
func (t *teams) uploadTimes(ctx context.Context, readings, uploads int) (map[string]time.Duration, error) {
	perDevice := (uploads + t.Fleet.Devices - 1) / t.Fleet.Devices
	length := time.Duration(readings) * roomsensor.BucketLength
	window := roomsensor.Window{From: t.since, To: t.since.Add(time.Duration(perDevice) * length)}
	if window.To.After(t.Fleet.Until) {
		return nil, fmt.Errorf("the uploads of %d days are sent: -rounds must be fewer", uploadedDays)
	}
	t.since = window.To
	before, err := t.processorTimes(ctx)
	if err != nil {
		return nil, err
	}
	client := load.NewClient()
	defer client.CloseIdle()
	_, err = load.Each(ctx, SingleConnections, uploads, func(ctx context.Context, _, k int) error {
		from := window.From.Add(time.Duration(k/t.Fleet.Devices) * length)
		return t.post(ctx, client, k%t.Fleet.Devices, roomsensor.Window{From: from, To: from.Add(length)})
	})
	if err != nil {
		return nil, err
	}
	if err := t.queue.AwaitDrained(ctx); err != nil {
		return nil, err
	}
	times, err := t.processorTimes(ctx)
	if err != nil {
		return nil, err
	}
	for name := range times {
		times[name] -= before[name]
	}
	return times, env.CheckStored(ctx, t.Pool, window, readings*uploads)
}

// processorTimes returns the processor time of each process since its start.
func (t *teams) processorTimes(ctx context.Context) (times map[string]time.Duration, err error) {
	times = map[string]time.Duration{}
	for i, cpu := range []func() (time.Duration, error){t.receiver.CPU, t.worker.CPU, t.queue.Server.CPU} {
		if times[processorParts[i]], err = cpu(); err != nil {
			return nil, err
		}
	}
	server, ok, err := t.ServerCPU(ctx)
	if ok {
		times[processorParts[len(processorParts)-1]] = server
	}
	return times, err
}
