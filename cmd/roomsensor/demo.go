package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"roomsensor/internal/app"
)

type demoCmd struct {
	DataDir       string `help:"Directory of its data; by default demo in /var/lib/roomsensor for root, else in ~/.local/state/roomsensor." name:"data-dir" placeholder:"DIR" setting:""`
	DatabaseURL   string `help:"Database to use; without it one is found or started." name:"database-url" placeholder:"URL" setting:""`
	Reset         bool   `help:"Begin anew. Nothing is deleted in a database that was given."`
	History       span   `default:"90d" help:"How far back the readings reach at the first start." placeholder:"LENGTH"`
	APIAddr       string `default:"127.0.0.1:8080" help:"Address the API listens on; the next free port where it is taken, as for all of these." name:"api-addr" placeholder:"HOST:PORT" setting:""`
	IngestAddr    string `default:"127.0.0.1:8081" help:"Address the receiver listens on." name:"ingest-addr" placeholder:"HOST:PORT" setting:""`
	APIOpsAddr    string `default:"127.0.0.1:9080" help:"Address of the API's health checks and metrics." name:"api-ops-addr" placeholder:"HOST:PORT"`
	IngestOpsAddr string `default:"127.0.0.1:9081" help:"Address of the worker's health checks and metrics." name:"ingest-ops-addr" placeholder:"HOST:PORT"`
	NATSPort      uint16 `default:"4222" help:"Port of NATS on 127.0.0.1." name:"nats-port" placeholder:"PORT"`
}

// uploadEvery is how often each device of the demo uploads its newest
// measurement, which stays the same for 5 minutes.
const uploadEvery = 45 * time.Second

// Run carries the command out.
func (c *demoCmd) Run(ctx context.Context, t *terminal) error {
	// A terminal that is closed ends the demo in order too, and a pipe that is
	// closed does not end it: the database server must not stay behind.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return app.Demo(ctx, app.DemoOptions{
		DatabaseURL: c.DatabaseURL, DataDir: c.DataDir, Reset: c.Reset, History: c.History.orZero(),
		APIAddr: c.APIAddr, APIOpsAddr: c.APIOpsAddr, IngestAddr: c.IngestAddr, IngestOpsAddr: c.IngestOpsAddr,
		NATSPort: int(c.NATSPort), Every: uploadEvery, Out: t.stdout, Version: currentVersion(),
	})
}
