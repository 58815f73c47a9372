// Clusterrun runs the trial of a whole cluster in containers (package cluster); `go tool task cluster` calls it. The
// report goes to stdout and ends with the verdict, `N lost, N duplicated, N wrong, N phantom`; everything else goes to
// stderr. It exits with 1 unless all are 0 and the cluster got over every fault.
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

	"roomsensor/internal/chaos/cluster"
)

// flags change the full trial. What is 0 stays as it is there.
type flags struct {
	Seed         uint64        `help:"Seed of the uploads; drawn when 0." placeholder:"N"`
	Short        bool          `help:"Each fault once, with shorter pauses."`
	Rounds       int           `help:"How often each fault happens." placeholder:"N"`
	Rate         int           `help:"Readings to send a second." placeholder:"N"`
	Down         time.Duration `help:"How long a member stays dead or cut off." placeholder:"TIME"`
	Detect       time.Duration `help:"How long it takes until the standby of a dead primary is promoted." placeholder:"TIME"`
	Only         string        `help:"Only the faults with this in their names, such as primary." placeholder:"TEXT"`
	Asynchronous bool          `help:"The negative control: nobody waits for the standby, which is cut off before the primary dies, and the trial must fail."`
	Report       string        `help:"File for the report as JSON." default:"cluster.json" placeholder:"FILE"`
	Dir          string        `help:"Directory for logs; a temporary one by default." placeholder:"DIR"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	var f flags
	kong.Parse(&f, kong.Name("clusterrun"))
	passed, err := run(ctx, f, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err) // There is nowhere else to say it.
	}
	if !passed {
		os.Exit(1)
	}
}

func (f *flags) options(progress io.Writer) cluster.Options {
	seed := f.Seed
	if seed == 0 {
		seed = rand.Uint64() >> 1 //nolint:gosec // It only has to be another one each time.
	}
	o := cluster.Full(seed)
	if f.Short {
		o = cluster.Short(seed)
	}
	if f.Rounds > 0 {
		o.Rounds = f.Rounds
	}
	if f.Rate > 0 {
		o.Rate = f.Rate
	}
	if f.Down > 0 {
		o.Down = f.Down
	}
	if f.Detect > 0 {
		o.Detect = f.Detect
	}
	o.Only, o.Asynchronous, o.Dir, o.Progress = f.Only, f.Asynchronous, f.Dir, progress
	return o
}

// run tells whether the trial passed; its error is of a trial that came to no verdict.
func run(ctx context.Context, f flags, out, progress io.Writer) (passed bool, err error) {
	o := f.options(progress)
	_, _ = fmt.Fprintf(progress, "seed %d\n", o.Seed) // Nobody is left to tell.
	report, err := cluster.Run(ctx, o)
	if report == nil {
		return false, err
	}
	if err := report.Save(f.Report); err != nil {
		return false, err
	}
	failure := report.Failure()
	if failure != nil {
		_, _ = fmt.Fprintln(progress, failure) // Likewise.
	}
	if printed := report.Print(out); printed != nil {
		return false, printed
	}
	return failure == nil && err == nil, err
}
