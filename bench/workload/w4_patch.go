package workload

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"roomsensor/bench/bar"
	"roomsensor/bench/report"
)

const patchConnections = 16

// patch is W4: changes of a tag of devices at random, against the UPDATE alone.
func (s *suite) patch(ctx context.Context) error {
	choose := fmt.Sprintf("\\set d random(0, %d)\n\\set n random(1, 1000000000)\n", s.fleet.Devices-1)
	statement := &bar.Statement{
		Database: s.Database, Script: choose + fmt.Sprintf(updateSQL, s.fleet.DeviceIDSQL(":d")),
		Values: map[string]string{"team": s.team.String()},
	}
	change := s.patches(false)
	ours, theirs, err := s.contest(ctx, change, s.pgbench(statement, patchConnections))
	if err != nil {
		return err
	}
	row := report.Row{
		ID: "W4", Workload: "PATCH, 16 connections", Unit: "/s", Ours: ours, Against: "pgbench: updateSQL", Bar: theirs,
		Reach: 0.5, Aim: 0.8,
	}
	s.add(row)
	if err := s.profileAPI(ctx, "w4", change); err != nil {
		return err
	}
	// With the header it is more work, which has no bar of its own.
	once := s.patches(true)
	if row.Ours, _, err = s.contest(ctx, once, nil); err != nil {
		return err
	}
	row.Workload, row.Reach, row.Aim = "the same with an Idempotency-Key", 0, 0
	s.add(row)
	return s.profileAPI(ctx, "w4-once", once)
}

// patches is the rate of changes, each with a key of idempotency or without.
func (s *suite) patches(once bool) side {
	return func(ctx context.Context) (float64, error) {
		return s.closed(ctx, patchConnections, func(ctx context.Context, v *visitor, n int) error {
			return s.patchOne(ctx, v, n, once)
		})
	}
}

func (s *suite) patchOne(ctx context.Context, v *visitor, n int, once bool) error {
	bearer, err := v.lease.Bearer(ctx)
	if err != nil {
		return err
	}
	body := fmt.Sprintf(`{"metadata":{"bench":"%d"}}`, v.dice.IntN(1_000_000_000))
	url := v.base + "/devices/" + s.fleet.DeviceID(v.dice.IntN(s.fleet.Devices)).String()
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	request.Header.Set("Authorization", bearer)
	request.Header.Set("Content-Type", "application/json")
	if once {
		request.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%d-%d", bearer[len(bearer)-8:], v.number, n))
	}
	_, err = v.client.Do(request, http.StatusOK)
	return err
}
