// Fuzzrun runs the fuzz targets of the module one after the other, on a TimescaleDB that it gets for them and ends
// afterwards; `go tool task fuzz` calls it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"roomsensor/internal/localdb"
)

// options is what the flags say.
type options struct {
	time   time.Duration
	only   *regexp.Regexp
	guided bool
	jobs   int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the exit code: 0, 1 where a target found something or could not run, 2 where the flags are wrong.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if err != nil {
		return 2
	}
	if err := fuzz(ctx, o, stdout); err != nil {
		_, _ = fmt.Fprintln(stderr, err) // There is nowhere else to say it.
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.time, "time", time.Minute, "how long each target runs")
	flags.BoolVar(&o.guided, "guided", true,
		"let coverage guide the inputs; without it nothing is compiled anew, and they are blind variations of the seeds")
	flags.IntVar(&o.jobs, "jobs", 2, "how many targets run at once, of one process each")
	flags.Func("run", "a regular expression; only targets with such a name run", func(text string) (err error) {
		o.only, err = regexp.Compile(text)
		return err //nolint:wrapcheck // The flag set says of which flag it is.
	})
	return o, flags.Parse(args) //nolint:wrapcheck // The flag set has told it.
}

// fuzz runs all targets, whatever the others find.
func fuzz(ctx context.Context, o options, out io.Writer) (err error) {
	targets, err := find(".", o.only)
	if err != nil {
		return err
	}
	server, remove, err := localdb.StartTemporary(ctx, localdb.Options{
		URL: os.Getenv("TEST_DATABASE_URL"), URLVariable: "TEST_DATABASE_URL",
		Settings: localdb.ForTests(), Progress: out,
	})
	if err != nil {
		return fmt.Errorf("starting a database: %w", err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	dir, err := os.MkdirTemp("", "roomsensor-fuzz-")
	if err != nil {
		return fmt.Errorf("making a place for the programs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &runner{options: o, dir: dir, url: server.URL, out: out}
	if err := r.prepare(ctx, targets); err != nil {
		return err
	}
	return r.all(ctx, targets)
}

// all gives each target its time, a few at once.
func (r *runner) all(ctx context.Context, targets []target) error {
	var group errgroup.Group
	group.SetLimit(max(1, r.jobs))
	failed := make([]error, len(targets))
	for i, t := range targets {
		group.Go(func() error {
			failed[i] = r.one(ctx, t)
			return nil
		})
	}
	_ = group.Wait() // What failed is gathered.
	return errors.Join(failed...)
}
