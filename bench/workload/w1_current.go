package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"roomsensor/bench/baseline"
	"roomsensor/bench/report"
)

// currentConnections is the number of connections of W1.
const currentConnections = 4

// latestSQL selects the newest reading of each device of a team. The statements of pgbench are not those of queries/,
// so that a change of the service does not change its baseline.
const latestSQL = `
SELECT d.id, r.bucket_at, r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db, r.ingested_at
FROM devices d
CROSS JOIN LATERAL (
    SELECT bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, ingested_at FROM readings
    WHERE readings.device_id = d.id AND readings.bucket_at >= :since::timestamptz
    ORDER BY readings.bucket_at DESC LIMIT 1
) r
WHERE d.team_id = :team::uuid;`

// current is W1: the snapshot of all devices, compared with a statement that selects their newest readings.
func (s *Suite) current(ctx context.Context) error {
	if err := s.checkCurrent(ctx); err != nil {
		return err
	}
	ours, theirs, err := s.Compare(ctx, s.currentRate, s.pgbench(s.latestStatement(), currentConnections))
	if err != nil {
		return err
	}
	s.Add(report.Row{
		ID: "W1", Workload: fmt.Sprintf("/devices/current, %d devices, 4 connections", s.Fleet.Devices), Layout: s.Layout,
		Unit: "/s", Ours: ours, Against: "pgbench: latestSQL", Baseline: theirs, Minimum: 0.9, Target: 8,
	})
	return s.notModified(ctx, theirs)
}

// currentRate returns the snapshots per second.
func (s *Suite) currentRate(ctx context.Context) (float64, error) {
	return s.closedRate(ctx, currentConnections, s.getCurrent)
}

// getCurrent requests the snapshot. It checks the size only, because the content changes with the hour.
func (s *Suite) getCurrent(ctx context.Context, c *client, _ int) error {
	answer, err := c.get(ctx, "/devices/current")
	if err == nil && answer.Bytes < int64(s.Fleet.Devices)*minDeviceBytes {
		return fmt.Errorf("%w: %d bytes", errBody, answer.Bytes)
	}
	return err
}

// minDeviceBytes is less than the size of a device in the snapshot.
const minDeviceBytes = 500

// latestStatement returns the cheapest part of the work for a snapshot: the newest reading of each device.
func (s *Suite) latestStatement() *baseline.Statement {
	return &baseline.Statement{
		Database: s.Database, Script: latestSQL,
		Values: map[string]string{"since": s.Fleet.Until.AddDate(0, 0, -7).Format(time.RFC3339), "team": s.team.String()},
	}
}

// notModified is W1 with If-None-Match. It has no baseline of its own.
func (s *Suite) notModified(ctx context.Context, theirs report.Sample) error {
	ours, _, err := s.Compare(ctx, func(ctx context.Context) (float64, error) {
		tags := make([]string, currentConnections)
		return s.closedRate(ctx, currentConnections, func(ctx context.Context, c *client, _ int) error {
			return c.getIfChanged(ctx, &tags[c.number])
		})
	}, nil)
	if err != nil {
		return err
	}
	s.Add(report.Row{
		ID: "W1", Workload: "the same with If-None-Match", Layout: s.Layout, Unit: "/s", Ours: ours,
		Against: "pgbench: latestSQL", Baseline: theirs,
	})
	return nil
}

// getIfChanged requests the snapshot with the ETag of the last one. The answer must be 304.
func (c *client) getIfChanged(ctx context.Context, tag *string) error {
	request, err := c.request(ctx, http.MethodGet, "/devices/current", nil)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if *tag != "" {
		request.Header.Set("If-None-Match", *tag)
		status = http.StatusNotModified
	}
	answer, err := c.http.Do(request, status)
	if err == nil {
		*tag = answer.ETag
	}
	return err
}

// checkCurrent compares the newest readings in the snapshot with the table.
func (s *Suite) checkCurrent(ctx context.Context) error {
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
	if len(page.Data) != s.Fleet.Devices {
		return fmt.Errorf("%w: %d devices of %d", errBody, len(page.Data), s.Fleet.Devices)
	}
	for _, d := range page.Data {
		var at time.Time
		var co2 float32
		err := s.Pool.QueryRow(ctx, "SELECT bucket_at, co2_ppm FROM readings WHERE device_id = $1 AND bucket_at > $2"+
			" ORDER BY bucket_at DESC LIMIT 1", d.DeviceID, s.Fleet.Until.AddDate(0, 0, -1)).Scan(&at, &co2)
		if err != nil || !at.Equal(d.Latest.BucketAt) || co2 != d.Latest.CO2 {
			return fmt.Errorf("%w: the latest of %s: %w", errBody, d.DeviceID, err)
		}
	}
	return nil
}
