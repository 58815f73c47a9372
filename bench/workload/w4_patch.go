package workload

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"roomsensor/bench/baseline"
	"roomsensor/bench/report"
)

// patchConnections is the number of connections of W4.
const patchConnections = 16

// updateSQL changes the tags of a device, and writes its name again; %s is its id.
const updateSQL = `
UPDATE devices
SET display_name = display_name, metadata = jsonb_build_object('building', 'b1', 'floor', '1', 'bench', :n::text)
WHERE team_id = :team::uuid AND id = %s;`

// patch is W4: changes of a tag of random devices, compared with the UPDATE.
func (s *Suite) patch(ctx context.Context) error {
	choose := fmt.Sprintf("\\set d random(0, %d)\n\\set n random(1, 1000000000)\n", s.Fleet.Devices-1)
	statement := &baseline.Statement{
		Database: s.Database, Script: choose + fmt.Sprintf(updateSQL, s.Fleet.DeviceIDSQL(":d")),
		Values: map[string]string{"team": s.team.String()},
	}
	ours, theirs, err := s.Compare(ctx, s.patches(false), s.pgbench(statement, patchConnections))
	if err != nil {
		return err
	}
	row := report.Row{
		ID: "W4", Workload: "PATCH, 16 connections", Unit: "/s", Ours: ours, Against: "pgbench: updateSQL", Baseline: theirs,
		Minimum: 0.5, Target: 0.8,
	}
	s.Add(row)
	// With an Idempotency-Key there is more work, which has no baseline of its own.
	if row.Ours, _, err = s.Compare(ctx, s.patches(true), nil); err != nil {
		return err
	}
	row.Workload, row.Minimum, row.Target = "the same with an Idempotency-Key", 0, 0
	s.Add(row)
	return nil
}

// patches returns the changes per second, with or without an Idempotency-Key.
func (s *Suite) patches(idempotent bool) Side {
	return func(ctx context.Context) (float64, error) {
		return s.closedRate(ctx, patchConnections, func(ctx context.Context, c *client, _ int) error {
			return s.patchOne(ctx, c, idempotent)
		})
	}
}

func (s *Suite) patchOne(ctx context.Context, c *client, idempotent bool) error {
	body := fmt.Sprintf(`{"metadata":{"bench":"%d"}}`, c.rng.IntN(1_000_000_000))
	path := "/devices/" + s.Fleet.DeviceID(c.rng.IntN(s.Fleet.Devices)).String()
	request, err := c.request(ctx, http.MethodPatch, path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if idempotent {
		request.Header.Set("Idempotency-Key", uuid.NewString())
	}
	_, err = c.http.Do(request, http.StatusOK)
	return err
}
