package burst

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"roomsensor/internal/dev/postgres"
	"roomsensor/test/dbtest"
	"roomsensor/test/harness"
)

// Options are the sizes of a trial. The tags are the flags of the command line. Their defaults are the trial that
// docs/operate/late-bursts.md describes.
type Options struct {
	Devices      int           `json:"devices" default:"1000" help:"Late devices."`
	Days         float64       `json:"days" default:"3" help:"Days for which they were offline."`
	Senders      int           `json:"senders" default:"64" help:"Concurrent requests of late devices."`
	Fresh        int           `json:"fresh" default:"100" help:"Devices that were never offline."`
	FreshRate    float64       `json:"fresh_rate" default:"20" help:"Uploads of these devices per second, of all together."`
	Calm         time.Duration `json:"-" default:"15s" help:"Time for which only these devices send, before the burst."`
	BurstWorkers int           `json:"burst_workers" default:"2" help:"Workers during the burst."`
	Workers      []int         `json:"workers" default:"1,2,4" help:"Numbers of workers to compare."`
	Seed         uint64        `json:"seed" default:"1" help:"Seed of the readings."`
	DatabaseURL  string        `json:"-" env:"BENCH_DATABASE_URL" help:"Database server to use instead of a private one." placeholder:"URL"`
	// Progress receives a line per event.
	Progress io.Writer `json:"-" kong:"-"`
}

// Validate returns an error for sizes with which nothing can be proven.
func (o *Options) Validate() error {
	if o.Devices < 1 || o.Days <= 0 || o.Senders < 1 || o.Fresh < 1 || o.FreshRate <= 0 || o.BurstWorkers < 1 ||
		len(o.Workers) == 0 || slices.Min(o.Workers) < 1 {
		return errors.New("all sizes must be greater than 0")
	}
	return nil
}

// databaseSettings are those of a small dedicated server with durable commits.
var databaseSettings = map[string]string{
	"shared_buffers": "1GB",
	"max_wal_size":   "4GB",
}

// trial contains what all phases share.
type trial struct {
	*harness.Env
	options  Options
	server   string // URL of the database server
	programs harness.Programs
	load     *load
}

// Run carries out a trial. It returns a report if the trial ran to its end, whether it failed or not.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	e, err := harness.NewEnv("", o.Progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx, err != nil)) }()
	t := &trial{Env: e, options: o, load: makeLoad(&o, time.Now().UTC().Truncate(time.Hour))}
	server, remove, err := dbtest.StartTemporary(ctx, postgres.Options{
		URL: o.DatabaseURL, URLVariable: "BENCH_DATABASE_URL", Settings: databaseSettings, Progress: o.Progress,
	})
	if err != nil {
		return nil, fmt.Errorf("starting a database: %w", err)
	}
	e.OnClose(func(context.Context) error { return remove() })
	t.server = server.URL
	e.Logf("building roomsensor and nats-server")
	if t.programs, err = harness.Build(ctx, e.Dir); err != nil {
		return nil, err
	}
	return t.run(ctx, newReport(o, t.load, server.How))
}

func (t *trial) run(ctx context.Context, r *Report) (*Report, error) {
	t.Logf("%d devices send %d readings in %d uploads, %d MB", t.options.Devices, t.load.readings,
		len(t.load.requests), t.load.bytes/1e6)
	var err error
	if r.Burst, err = t.runBurst(ctx); err != nil {
		return nil, fmt.Errorf("running a late burst: %w", err)
	}
	for _, n := range t.options.Workers {
		result, err := t.runWorkers(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("running %d workers: %w", n, err)
		}
		r.Scaling = append(r.Scaling, result)
	}
	if r.Churn, err = t.runChurn(ctx); err != nil {
		return nil, fmt.Errorf("running workers that join and leave: %w", err)
	}
	return r, nil
}
