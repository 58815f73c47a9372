package burst

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"roomsensor/internal/dev/postgres"
	"roomsensor/test/dbtest"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

// Options are the sizes of a trial.
type Options struct {
	Devices      int           `json:"devices"`       // late devices
	Days         float64       `json:"days"`          // for which they were offline
	Order        string        `json:"order"`         // of their readings
	Senders      int           `json:"senders"`       // concurrent requests
	Fresh        int           `json:"fresh"`         // devices that were never offline
	FreshRate    float64       `json:"fresh_rate"`    // their uploads per second, of all together
	Calm         time.Duration `json:"-"`             // for which they send before the burst
	BurstWorkers int           `json:"burst_workers"` // during the burst
	Workers      []int         `json:"workers"`       // numbers of workers to compare
	Seed         uint64        `json:"seed"`

	// DatabaseURL is a server to use instead of a private one.
	DatabaseURL string `json:"-"`
	// Progress receives a line per event.
	Progress io.Writer `json:"-"`
}

// Full returns the options of the trial that docs/operate/late-bursts.md describes.
func Full() Options {
	return Options{
		Devices: 1000, Days: 3, Order: Mixed, Senders: 64, Fresh: 100, FreshRate: 20, Calm: 15 * time.Second,
		BurstWorkers: 2, Workers: []int{1, 2, 4}, Seed: 1,
	}
}

// Validate returns an error that names the flag with an invalid value.
func (o *Options) Validate() error {
	switch {
	case !slices.Contains(orders, o.Order):
		return fmt.Errorf("--order must be one of %s", strings.Join(orders, ", "))
	case o.Devices < 1, o.Days <= 0, o.Senders < 1, o.Fresh < 1, o.FreshRate <= 0, o.BurstWorkers < 1,
		len(o.Workers) == 0, slices.Min(o.Workers) < 1:
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
	options    Options
	server     string // URL of the database server
	roomsensor string // path of the program
	natsServer string // path of the program
	load       *load
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
	if t.roomsensor, err = proctest.Build(ctx, e.Dir, proctest.Roomsensor); err != nil {
		return nil, err
	}
	if t.natsServer, err = proctest.Build(ctx, e.Dir, proctest.NATSServer); err != nil {
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
