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
	for _, variant := range []struct {
		name, file string
		once       bool
		reach, aim float64
	}{{"16 connections", "", false, 0.5, 0.8}, {"16 connections, each with an Idempotency-Key", "-once", true, 0, 0}} {
		change := func(ctx context.Context) (float64, error) {
			return s.closed(ctx, patchConnections, func(ctx context.Context, v *visitor, n int) error {
				return s.patchOne(ctx, v, n, variant.once)
			})
		}
		ours, theirs, err := s.contest(ctx, change, s.pgbench(statement, patchConnections))
		if err != nil {
			return err
		}
		s.add(report.Row{
			ID: "W4", Workload: "PATCH, " + variant.name, Unit: "/s", Ours: ours, Against: "pgbench: updateSQL",
			Bar: theirs, Reach: variant.reach, Aim: variant.aim,
		})
		if err := s.profileAPI(ctx, "w4"+variant.file, change); err != nil {
			return err
		}
	}
	return nil
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
