package main

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"roomsensor/bench/ground"
	"roomsensor/bench/report"
	"roomsensor/bench/workload"
	"roomsensor/internal/localdb"
	"roomsensor/internal/roomsensor"
)

// measure sets everything up, runs the workloads and takes everything down.
func measure(ctx context.Context, o options, log io.Writer) (r *report.Report, err error) {
	began := time.Now()
	r = &report.Report{At: began.UTC().Truncate(time.Second), Commit: commit(ctx), Machine: report.ThisMachine()}
	g, err := ground.Open(ctx, ground.Options{URL: o.database, Log: log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	info, err := localdb.Describe(ctx, g.Database)
	if err != nil {
		return nil, err
	}
	if err := o.suits(info); err != nil {
		return nil, err
	}
	r.Database, r.Edition = info.String()+"; "+g.Server.How, info.Edition
	r.Versions = map[string]string{"go": runtime.Version(), "postgresql": info.PostgreSQL, "timescaledb": info.TimescaleDB}
	if r.Settings, err = g.InForce(ctx); err != nil {
		return nil, err
	}
	o.Fleet.Until = roomsensor.BucketOf(began.UTC())
	r.Options = o.Options
	r.Rows, err = workload.Run(ctx, g, o.Options)
	r.Seconds = time.Since(began).Seconds()
	return r, err
}

// commit is what was measured, where git tells.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
