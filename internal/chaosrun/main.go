// Chaosrun runs the trial by fire of the ingest side (package chaos); `go tool task chaos` calls it. The report goes to
// stdout and ends with the verdict, `N lost, N duplicated, N wrong, N phantom`; everything else goes to stderr. It
// exits with 1 unless all are 0 and every planned fault has happened.
package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"roomsensor/internal/chaos"
)

// flags change the full trial. What is 0 stays as it is there.
type flags struct {
	Seed     uint64        `help:"Seed of the uploads and of the schedule of faults; drawn when 0." placeholder:"N"`
	Short    bool          `help:"The trial of the tests: each kind of fault, in less than a minute."`
	Readings int           `help:"Readings to send."  placeholder:"N"`
	Burst    time.Duration `help:"Time over which they are sent and the faults happen." placeholder:"TIME"`
	Workers  int           `help:"Workers." placeholder:"N"`
	AckEarly bool          `help:"The negative control: workers acknowledge before they commit, and the trial must fail."`
	Plan     bool          `help:"Print the schedule and end."`
	Report   string        `help:"File for the report as JSON." default:"chaos.json" placeholder:"FILE"`
	Dir      string        `help:"Directory for programs, logs and streams; a temporary one by default." placeholder:"DIR"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	var f flags
	kong.Parse(&f, kong.Name("chaosrun"))
	passed, err := run(ctx, f, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err) // There is nowhere else to say it.
	}
	if !passed {
		os.Exit(1)
	}
}

func (f *flags) options(progress io.Writer) chaos.Options {
	seed := f.Seed
	if seed == 0 {
		seed = rand.Uint64() >> 1 //nolint:gosec // It only has to be another one each time.
	}
	o := chaos.Full(seed)
	if f.Short {
		o = chaos.Short(seed)
	}
	if f.Readings > 0 {
		o.Readings = f.Readings
	}
	if f.Burst > 0 {
		o.Burst = f.Burst
	}
	if f.Workers > 0 {
		o.Workers = f.Workers
	}
	o.AckEarly, o.Dir, o.Progress = f.AckEarly, f.Dir, progress
	return o
}

// run tells whether the trial passed; its error is of a trial that came to no verdict.
func run(ctx context.Context, f flags, out, progress io.Writer) (passed bool, err error) {
	o := f.options(progress)
	if err := o.Validate(); err != nil {
		return false, err
	}
	_, _ = fmt.Fprintf(progress, "seed %d; the plan:\n", o.Seed) // Nobody is left to tell.
	if err := chaos.NewPlan(o).Print(progress); err != nil || f.Plan {
		return err == nil, err
	}
	report, err := chaos.Run(ctx, o)
	if err != nil {
		return false, err
	}
	if err := report.Save(f.Report); err != nil {
		return false, err
	}
	failure := report.Failure()
	if failure != nil {
		_, _ = fmt.Fprintln(progress, failure) // Likewise.
	}
	return failure == nil, report.Print(out)
}
