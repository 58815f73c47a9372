package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

const (
	teamConnections = 32
	// minListedBytes is less than the size of a device in the list.
	minListedBytes = 100
)

// manyTeams is W12: the snapshots of many teams in turn, compared with the lists of their devices. No team is asked
// again before its snapshot is out of date.
func (s *Suite) manyTeams(ctx context.Context) error {
	if err := s.teams.checkCurrent(ctx); err != nil {
		return err
	}
	s.teams.idle = time.Now()
	ours, theirs, err := s.Compare(ctx,
		s.turn("/devices/current", s.TeamDevices*minDeviceBytes), s.turn("/devices", s.TeamDevices*minListedBytes))
	if err != nil {
		return err
	}
	s.Add(report.Row{
		ID: "W12", Unit: "/s", Ours: ours, Against: "/devices of the same teams", Baseline: theirs, Minimum: 0.7, Target: 1.4,
		Workload: fmt.Sprintf("/devices/current of %d teams of %d devices, %d connections",
			s.Teams, s.TeamDevices, teamConnections),
	})
	return nil
}

// coldTeams is W17: W12 with a new API process for each turn of both sides, which knows no team and no key.
func (s *Suite) coldTeams(ctx context.Context) error {
	ours, theirs, err := s.Compare(ctx,
		s.restarted(s.turn("/devices/current", s.TeamDevices*minDeviceBytes)),
		s.restarted(s.turn("/devices", s.TeamDevices*minListedBytes)))
	if err != nil {
		return err
	}
	s.Add(report.Row{
		ID: "W17", Unit: "/s", Ours: ours, Against: "/devices of the same teams", Baseline: theirs, Minimum: 0.5, Target: 1,
		Workload: fmt.Sprintf("/devices/current of %d teams of %d devices from a new API process, %d connections",
			s.Teams, s.TeamDevices, teamConnections),
	})
	return nil
}

// restarted returns a side that runs after a restart of the API.
func (s *Suite) restarted(run Side) Side {
	return func(ctx context.Context) (float64, error) {
		if err := s.teams.restartAPI(ctx); err != nil {
			return 0, err
		}
		return run(ctx)
	}
}

// turn returns a side that requests a path once for every team. It begins when no team was asked for some time, which
// does not count.
func (s *Suite) turn(path string, least int) Side {
	t := s.teams
	return func(ctx context.Context) (float64, error) {
		if err := t.rest(ctx, s.TeamPause); err != nil {
			return 0, err
		}
		client := load.NewClient()
		defer client.CloseIdle()
		result, err := load.Each(ctx, teamConnections, t.Number, func(ctx context.Context, _, _ int) error {
			return t.get(ctx, client, path, least)
		})
		t.idle = time.Now()
		if err != nil {
			return 0, err
		}
		return result.Rate(), nil
	}
}

// rest waits until no team was asked for some time.
func (t *teams) rest(ctx context.Context, pause time.Duration) error {
	return retry.Sleep(ctx, time.Until(t.idle.Add(pause)))
}

// checkCurrent compares the devices and newest readings in the snapshot of every team with the fleet.
func (t *teams) checkCurrent(ctx context.Context) error {
	client := load.NewClient()
	defer client.CloseIdle()
	_, err := load.Each(ctx, teamConnections, t.Number, func(ctx context.Context, _, team int) error {
		request, err := t.request(ctx, team, "/devices/current")
		if err != nil {
			return err
		}
		body, err := client.Read(request)
		if err != nil {
			return err
		}
		return t.checkBody(team, body)
	})
	return err
}

func (t *teams) checkBody(team int, body []byte) error {
	var page struct {
		Data []struct {
			DeviceID uuid.UUID      `json:"device_id"`
			Latest   map[string]any `json:"latest"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return fmt.Errorf("reading /devices/current: %w", err)
	}
	if len(page.Data) != t.Fleet.Devices/t.Number {
		return fmt.Errorf("%w: %d devices", errBody, len(page.Data))
	}
	for _, d := range page.Data {
		i, ok := t.numbers[d.DeviceID]
		at := t.latest(i)
		want := t.Fleet.Reading(i, at)
		if !ok || t.Team(i) != team || d.Latest["bucket_at"] != at.Format(time.RFC3339) || !equalValues(&want, d.Latest) {
			return fmt.Errorf("%w: the latest of %s is %v", errBody, d.DeviceID, d.Latest)
		}
	}
	return nil
}

// latest returns the bucket of the newest reading of a device.
func (t *teams) latest(device int) time.Time {
	uploads := (int(t.sent.Load()) + t.Fleet.Devices - 1 - device) / t.Fleet.Devices
	if uploads == 0 {
		return t.since.Add(-teamsStep)
	}
	return t.since.Add(time.Duration(uploads-1) * roomsensor.BucketLength)
}
