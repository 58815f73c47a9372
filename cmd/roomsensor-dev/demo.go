package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"roomsensor/internal/cli"
	"roomsensor/internal/config"
	"roomsensor/internal/demo"
)

type demoCmd struct {
	DataDir          string          `help:"Data directory." implied:"/var/lib/roomsensor/demo for root, otherwise ~/.local/state/roomsensor/demo" name:"data-dir" placeholder:"DIR" setting:""`
	DatabaseURL      config.Secret   `help:"URL of the database to use." implied:"finds or starts one" name:"database-url" placeholder:"URL" setting:""`
	Reset            bool            `help:"Start over with a new team. Deletes nothing in the database of --database-url."`
	History          config.Duration `default:"90d" help:"How far back the readings go at the first start." placeholder:"DURATION"`
	APIAddr          string          `default:"127.0.0.1:8080" help:"Address that the API listens on. For this and all other addresses, the next free port is used if one is in use." name:"api-addr" placeholder:"HOST:PORT" setting:""`
	IngestAddr       string          `default:"127.0.0.1:8081" help:"Address that the receiver listens on." name:"ingest-addr" placeholder:"HOST:PORT" setting:""`
	DashboardAddr    string          `default:"127.0.0.1:8082" help:"Address that the dashboard listens on." name:"dashboard-addr" placeholder:"HOST:PORT" setting:""`
	APIOpsAddr       string          `default:"127.0.0.1:9080" help:"Address of health checks and metrics of the API." name:"api-ops-addr" placeholder:"HOST:PORT"`
	IngestOpsAddr    string          `default:"127.0.0.1:9081" help:"Address of health checks and metrics of ingest." name:"ingest-ops-addr" placeholder:"HOST:PORT"`
	DashboardOpsAddr string          `default:"127.0.0.1:9082" help:"Address of health checks and metrics of the dashboard." name:"dashboard-ops-addr" placeholder:"HOST:PORT"`
	NotifyOpsAddr    string          `default:"127.0.0.1:9084" help:"Address of health checks and metrics of notify." name:"notify-ops-addr" placeholder:"HOST:PORT"`
	NATSPort         uint16          `default:"4222" help:"Port of NATS on 127.0.0.1." name:"nats-port" placeholder:"PORT"`
}

// uploadInterval is how often each device of the demo uploads its newest measurement, which changes every 5 minutes.
const uploadInterval = 45 * time.Second

// Run runs the demo until the command is interrupted.
func (c *demoCmd) Run(ctx context.Context, t *cli.Terminal) error {
	// A closed terminal stops the demo gracefully, and a closed pipe does not stop it: the database server must not keep
	// running without the demo.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return demo.Run(ctx, demo.Options{
		DatabaseURL: string(c.DatabaseURL), DataDir: c.DataDir, Reset: c.Reset, History: time.Duration(c.History),
		APIAddr: c.APIAddr, APIOpsAddr: c.APIOpsAddr, IngestAddr: c.IngestAddr, IngestOpsAddr: c.IngestOpsAddr,
		DashboardAddr: c.DashboardAddr, DashboardOpsAddr: c.DashboardOpsAddr, NotifyOpsAddr: c.NotifyOpsAddr,
		NATSPort: int(c.NATSPort), Every: uploadInterval, Out: t.Stdout, Confirm: t.Asker(), Version: t.Version,
	})
}
