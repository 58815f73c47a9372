package main

import (
	"cmp"
	"context"

	"roomsensor/internal/admin/doctor"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
)

type doctorCmd struct {
	onDatabase
	config.Standbys
	config.Queue
	config.Retention
	PublicURL         string `help:"Address that clients of the API reach, without /v1." implied:"not checked" name:"public-url" placeholder:"URL" setting:""`
	NATSMonitoringURL string `help:"Address of the monitoring port of NATS, such as http://127.0.0.1:8222." implied:"not checked" name:"nats-monitoring-url" placeholder:"URL" setting:""`
}

func (c *doctorCmd) options() doctor.Options {
	return doctor.Options{
		Standbys: c.Standbys, Queue: c.Queue, Keep: c.Retention, PublicURL: c.PublicURL, NATSMonitoring: c.NATSMonitoringURL,
	}
}

// Run prints the findings, and fails if something is wrong.
func (c *doctorCmd) Run(ctx context.Context, t *cli.Terminal) error {
	diagnosis, err := doctor.Diagnose(ctx, c.Database, c.options())
	if err != nil {
		return err
	}
	return cmp.Or(t.Print(c.Format, diagnosis), diagnosis.Refusal())
}
