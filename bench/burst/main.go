// Burst tries what happens when a fleet that was offline for days comes back at once: whether everything lands, what
// other devices notice of it, and what more workers are worth. `go tool task burst` calls it. It runs the program, a
// NATS server that syncs every message and a TimescaleDB of its own as real processes, prints tables and writes the
// figures as JSON.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"roomsensor/internal/localdb"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, "burst:", err) // There is nowhere else to say it.
		os.Exit(1)
	}
}

// run makes the whole trial. Its error is also that something was lost or wrong.
func run(ctx context.Context, args []string, out, log io.Writer) (err error) {
	o, results, err := parse(args, log)
	if err != nil {
		return err
	}
	server, remove, err := localdb.StartTemporary(ctx, localdb.Options{
		URL: os.Getenv("BENCH_DATABASE_URL"), URLVariable: "BENCH_DATABASE_URL",
		Settings: databaseSettings, Progress: log,
	})
	if err != nil {
		return fmt.Errorf("starting a database: %w", err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	dir, err := os.MkdirTemp("", "roomsensor-burst-")
	if err != nil {
		return fmt.Errorf("making a place for the trial: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	g, err := build(ctx, dir, log)
	if err != nil {
		return err
	}
	g.database = func(ctx context.Context) (string, func() error, error) { return createDatabase(ctx, server.URL) }
	r, err := try(ctx, g, o)
	if err != nil {
		return err
	}
	r.Database = server.How
	r.print(out)
	if err := r.write(results); err != nil {
		return err
	}
	return r.verdict()
}

// databaseSettings are those of a small dedicated server; what is acknowledged is on disk.
var databaseSettings = map[string]string{
	"shared_buffers": "1GB",
	"max_wal_size":   "4GB",
}

// options say how large the trial is.
type options struct {
	Devices   int           `json:"devices"`    // that come back late
	Days      float64       `json:"days"`       // for which they were offline
	Order     string        `json:"order"`      // in which each sends
	Senders   int           `json:"senders"`    // requests at once
	Fresh     int           `json:"fresh"`      // devices that were never offline
	FreshRate float64       `json:"fresh_rate"` // their uploads a second
	Calm      time.Duration `json:"-"`          // for which these are alone at first
	Attending int           `json:"burst_workers"`
	Workers   []int         `json:"workers"` // for the throughput
	Seed      uint64        `json:"seed"`
}

func parse(args []string, log io.Writer) (o options, results string, err error) {
	flags := flag.NewFlagSet("burst", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.IntVar(&o.Devices, "devices", 1000, "devices that come back late")
	flags.Float64Var(&o.Days, "days", 3, "days for which they were offline")
	flags.StringVar(&o.Order, "order", mixed, "order in which a device sends: "+strings.Join(orders, ", "))
	flags.IntVar(&o.Senders, "senders", 64, "requests of them at once")
	flags.IntVar(&o.Fresh, "fresh", 100, "devices that send what they just measured meanwhile")
	flags.Float64Var(&o.FreshRate, "fresh-rate", 20, "uploads a second of these")
	flags.DurationVar(&o.Calm, "calm", 15*time.Second, "how long these are alone at first")
	flags.IntVar(&o.Attending, "burst-workers", 2, "workers during the burst")
	workers := flags.String("workers", "1,2,4", "numbers of workers to compare")
	flags.Uint64Var(&o.Seed, "seed", 1, "what all randomness comes from")
	flags.StringVar(&results, "results", "bench/results", "directory for the figures")
	if err := flags.Parse(args); err != nil {
		return o, "", err //nolint:wrapcheck // It is a sentence.
	}
	for text := range strings.SplitSeq(*workers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return o, "", fmt.Errorf("--workers: %q is no number of workers", text)
		}
		o.Workers = append(o.Workers, n)
	}
	return o, results, o.validate()
}

func (o *options) validate() error {
	switch {
	case !knownOrder(o.Order):
		return fmt.Errorf("--order must be one of %s", strings.Join(orders, ", "))
	case o.Devices < 1, o.Days <= 0, o.Senders < 1, o.Fresh < 1, o.FreshRate <= 0, o.Attending < 1:
		return errors.New("every number must be above 0")
	}
	return nil
}
