package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"

	"roomsensor/bench/bar"
	"roomsensor/bench/load"
	"roomsensor/bench/report"
)

const currentConnections = 4

// current is W1: the snapshot of every device, against the statement that finds the newest readings for it.
func (s *suite) current(ctx context.Context) error {
	if err := s.checkCurrent(ctx); err != nil {
		return err
	}
	get := func(ctx context.Context) (float64, error) { return s.closed(ctx, currentConnections, s.getCurrent) }
	ours, theirs, err := s.contest(ctx, get, s.pgbench(s.latestStatement(), currentConnections))
	if err != nil {
		return err
	}
	s.add(report.Row{
		ID: "W1", Workload: fmt.Sprintf("/devices/current, %d devices, 4 connections", s.fleet.Devices), Layout: s.layout,
		Unit: "/s", Ours: ours, Against: "pgbench: latestSQL", Bar: theirs, Reach: 0.9, Aim: 8,
	})
	if err := s.profileAPI(ctx, "w1", get); err != nil {
		return err
	}
	return s.notModified(ctx, theirs)
}

// getCurrent asks for the snapshot, which changes with the hour: its size tells that it is whole.
func (s *suite) getCurrent(ctx context.Context, v *visitor, _ int) error {
	answer, err := v.get(ctx, "/devices/current")
	if err == nil && answer.Bytes < int64(s.fleet.Devices)*leastDevice {
		return fmt.Errorf("%w: %d bytes", errBody, answer.Bytes)
	}
	return err
}

// leastDevice is less than the snapshot of any device takes.
const leastDevice = 500

// latestStatement is the cheapest part of what the snapshot needs: the newest reading of each device of the team.
func (s *suite) latestStatement() *bar.Statement {
	return &bar.Statement{
		Database: s.Database, Script: latestSQL,
		Values: map[string]string{"since": s.fleet.Until.AddDate(0, 0, -7).Format(time.RFC3339), "team": s.team.String()},
	}
}

// notModified is W1 for clients that have the body already. It has no bar of its own.
func (s *suite) notModified(ctx context.Context, theirs report.Sample) error {
	var ours report.Sample
	for range s.Rounds {
		tags := make([]string, currentConnections)
		rate, err := s.closed(ctx, currentConnections, func(ctx context.Context, v *visitor, _ int) error {
			return v.getUnlessSame(ctx, &tags[v.number])
		})
		if err != nil {
			return err
		}
		ours = append(ours, rate)
	}
	s.add(report.Row{
		ID: "W1", Workload: "the same with If-None-Match", Layout: s.layout, Unit: "/s", Ours: ours,
		Against: "pgbench: latestSQL", Bar: theirs,
	})
	return nil
}

// getUnlessSame asks for the snapshot with the tag of the last one; 304 is what is expected while nothing changes.
func (v *visitor) getUnlessSame(ctx context.Context, tag *string) error {
	bearer, err := v.lease.Bearer(ctx)
	if err != nil {
		return err
	}
	request, err := load.Get(ctx, v.base+"/devices/current", bearer)
	if err != nil {
		return err
	}
	wanted := http.StatusOK
	if *tag != "" {
		request.Header.Set("If-None-Match", *tag)
		wanted = http.StatusNotModified
	}
	answer, err := v.client.Do(request, wanted)
	if err == nil {
		*tag = answer.Header.Get("ETag")
	}
	return err
}

// checkCurrent compares the newest readings that the snapshot shows with the readings.
func (s *suite) checkCurrent(ctx context.Context) error {
	body, err := s.body(ctx, "/devices/current")
	if err != nil {
		return err
	}
	var page struct {
		Data []struct {
			DeviceID uuid.UUID `json:"device_id"`
			Latest   struct {
				BucketAt time.Time `json:"bucket_at"`
				CO2      float32   `json:"co2_ppm"`
			} `json:"latest"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return fmt.Errorf("reading /devices/current: %w", err)
	}
	if len(page.Data) != s.fleet.Devices {
		return fmt.Errorf("%w: %d devices of %d", errBody, len(page.Data), s.fleet.Devices)
	}
	for _, d := range page.Data {
		var at time.Time
		var co2 float32
		err := s.Pool.QueryRow(ctx, "SELECT bucket_at, co2_ppm FROM readings WHERE device_id = $1 AND bucket_at > $2"+
			" ORDER BY bucket_at DESC LIMIT 1", d.DeviceID, s.fleet.Until.AddDate(0, 0, -1)).Scan(&at, &co2)
		if err != nil || !at.Equal(d.Latest.BucketAt) || co2 != d.Latest.CO2 {
			return fmt.Errorf("%w: the latest of %s: %w", errBody, d.DeviceID, err)
		}
	}
	return nil
}

// body is the body of an answer, for a check.
func (s *suite) body(ctx context.Context, path string) ([]byte, error) {
	bearer, err := s.keys.Lease().Bearer(ctx)
	if err != nil {
		return nil, err
	}
	request, err := load.Get(ctx, s.api.URL+"/v1"+path, bearer)
	if err != nil {
		return nil, err
	}
	return whole(request)
}

// whole is the body of the answer to a request, for a check.
func whole(request *http.Request) ([]byte, error) {
	path := request.URL.Path
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", path, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", path, err)
	}
	return body, nil
}
