package workload

import (
	"context"
	"fmt"
	"time"

	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
)

const (
	// memoryTeamDevices is the number of devices of a team of W15.
	memoryTeamDevices = 100
	// memoryRate is the number of teams per second: 10,000 within a minute.
	memoryRate = 10_000 / 60.0
	// The limits of the peak memory, in MiB.
	minimumTeamsMemory, targetTeamsMemory = 512, 256
)

// teamsMemory is W15: the peak memory of a new API process that serves the snapshots of many teams in turn.
func (s *Suite) teamsMemory(ctx context.Context) error {
	t, err := s.newTeams(ctx, s.MemoryTeams, memoryTeamDevices)
	if err != nil {
		return err
	}
	newest := roomsensor.Window{From: t.Fleet.Until.Add(-roomsensor.BucketLength), To: t.Fleet.Until}
	if err := t.Load(ctx, newest, roomsensor.BucketLength); err != nil {
		return err
	}
	if t.api, err = t.Start(ctx, "api-memory", nil, "api"); err != nil {
		return err
	}
	client := load.NewClient()
	defer client.CloseIdle()
	// Half a request more, so that the number is not rounded down.
	d := time.Duration((float64(t.Number) + 0.5) / memoryRate * float64(time.Second))
	get := func(ctx context.Context, _, _ int) error {
		return t.get(ctx, client, "/devices/current", memoryTeamDevices*minDeviceBytes)
	}
	result, err := load.Open(ctx, memoryRate, d, load.Limited(teamConnections, get))
	if err != nil {
		return err
	}
	_, peak, err := t.api.Memory()
	if err != nil {
		return err
	}
	row := report.Row{
		ID: "W15", Workload: fmt.Sprintf("memory of the API, %d teams of %d devices", t.Number, memoryTeamDevices),
		Kind: report.Bound, Unit: "MiB", Ours: report.Sample{float64(peak) / mib},
		Minimum: minimumTeamsMemory, Target: targetTeamsMemory,
		Note: fmt.Sprintf("in %.1f s", result.Elapsed.Seconds()),
	}
	if s.Reduced {
		row.Minimum, row.Target = 0, 0
	}
	s.Add(row)
	return t.api.End()
}
