// Cmd runs the trials: `go tool task chaos`, `cluster` and `burst` call it. A report goes to stdout and ends with the
// verdict, `N lost, N duplicated, N wrong, N phantom`; progress goes to stderr. The exit code is 1 unless all counts
// are
// 0 and the trial met its other conditions.
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

	"roomsensor/test/chaos/burst"
	"roomsensor/test/chaos/cluster"
	"roomsensor/test/chaos/processes"
	"roomsensor/test/harness"
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// commands are the trials. A flag that is 0 or empty leaves the trial as it is.
type commands struct {
	Processes processesCommand `cmd:"" help:"Kill processes and disturb connections while uploads are sent."`
	Cluster   clusterCommand   `cmd:"" help:"Kill and disconnect members of a cluster in containers while uploads are sent."`
	Burst     burstCommand     `cmd:"" help:"Send the buffered uploads of a fleet that was offline for days."`
}

type processesCommand struct {
	Seed     uint64        `help:"Seed of the uploads and of the plan of faults (default: random)." placeholder:"N"`
	Short    bool          `help:"Run the trial of the tests: every kind of fault in less than a minute."`
	Readings int           `help:"Readings to send." placeholder:"N"`
	Burst    time.Duration `help:"Period over which readings are sent and faults happen." placeholder:"DURATION"`
	Workers  int           `help:"Number of workers." placeholder:"N"`
	AckEarly bool          `help:"Negative control: workers acknowledge before they commit, and the trial must fail."`
	Plan     bool          `help:"Print the plan of faults and exit."`
	Report   string        `help:"File for the report as JSON." default:"chaos.json" placeholder:"FILE"`
	Dir      string        `help:"Directory for programs, logs and streams (default: a temporary one)." placeholder:"DIR"`
}

type clusterCommand struct {
	Seed         uint64        `help:"Seed of the uploads (default: random)." placeholder:"N"`
	Short        bool          `help:"Run every fault once, with shorter pauses."`
	Rounds       int           `help:"Number of times that each fault happens." placeholder:"N"`
	Rate         int           `help:"Readings to send per second." placeholder:"N"`
	Down         time.Duration `help:"Time for which a member stays dead or disconnected." placeholder:"DURATION"`
	Detect       time.Duration `help:"Time from the loss of a primary to the promotion of its standby." placeholder:"DURATION"`
	Only         string        `help:"Run only the faults whose names contain this text, such as primary." placeholder:"TEXT"`
	Asynchronous bool          `help:"Negative control: commits do not wait for the standby, which is disconnected before the primary dies, and the trial must fail."`
	Report       string        `help:"File for the report as JSON." default:"cluster.json" placeholder:"FILE"`
	Dir          string        `help:"Directory for logs (default: a temporary one)." placeholder:"DIR"`
}

type burstCommand struct {
	Devices      int           `help:"Late devices (default: 1000)." placeholder:"N"`
	Days         float64       `help:"Days for which they were offline (default: 3)." placeholder:"N"`
	Order        string        `help:"Order of their readings: mixed, oldest, newest or shuffled (default: mixed)." placeholder:"ORDER"`
	Senders      int           `help:"Concurrent requests of late devices (default: 64)." placeholder:"N"`
	Fresh        int           `help:"Devices that were never offline (default: 100)." placeholder:"N"`
	FreshRate    float64       `help:"Uploads of these devices per second (default: 20)." placeholder:"N"`
	Calm         time.Duration `help:"Time for which only these devices send (default: 15s)." placeholder:"DURATION"`
	BurstWorkers int           `help:"Workers during the burst (default: 2)." placeholder:"N"`
	Workers      []int         `help:"Numbers of workers to compare (default: 1,2,4)." placeholder:"N,..."`
	Seed         uint64        `help:"Seed of the readings (default: 1)." placeholder:"N"`
	DatabaseURL  string        `help:"Database server to use instead of a private one." env:"BENCH_DATABASE_URL" placeholder:"URL"`
	Report       string        `help:"File for the report as JSON." default:"bench/results/burst.json" placeholder:"FILE"`
}

// report is what all trials return.
type report interface {
	Failure() error
	Print(out io.Writer) error
}

// run returns the exit code.
func run(ctx context.Context, args []string, out, progress io.Writer) (code int) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var c commands
	exited := -1
	parser, err := kong.New(&c, kong.Name("chaos"), kong.Writers(out, progress),
		kong.Exit(func(code int) { exited = code }))
	if err == nil {
		var command *kong.Context
		command, err = parser.Parse(args)
		if exited >= 0 {
			return exited // The help was printed.
		}
		if err == nil {
			err = c.run(ctx, command.Command(), out, progress)
		}
	}
	if err != nil {
		_, _ = fmt.Fprintln(progress, err) // If stderr is closed, the exit code remains.
		return 1
	}
	return 0
}

func (c *commands) run(ctx context.Context, command string, out, progress io.Writer) error {
	switch command {
	case "processes":
		o := c.Processes.options(progress)
		if err := o.Validate(); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(progress, "seed %d; the plan:\n", o.Seed) // Progress is optional.
		if err := processes.NewPlan(o).Print(progress); err != nil || c.Processes.Plan {
			return err
		}
		r, err := processes.Run(ctx, o)
		if r == nil {
			return err
		}
		return finish(r, err, c.Processes.Report, out)
	case "cluster":
		o := c.Cluster.options(progress)
		_, _ = fmt.Fprintf(progress, "seed %d\n", o.Seed) // Progress is optional.
		r, err := cluster.Run(ctx, o)
		if r == nil {
			return err
		}
		return finish(r, err, c.Cluster.Report, out)
	default:
		r, err := burst.Run(ctx, c.Burst.options(progress))
		if r == nil {
			return err
		}
		return finish(r, err, c.Burst.Report, out)
	}
}

// finish saves and prints a report. It returns an error if the trial failed or its cleanup did.
func finish(r report, err error, path string, out io.Writer) error {
	if err := harness.Save(path, r); err != nil {
		return err
	}
	failure := r.Failure()
	if err := r.Print(out); err != nil {
		return err
	}
	if failure != nil {
		return failure
	}
	return err
}

// set replaces a value unless the flag is the zero value.
func set[T comparable](value *T, flag T) {
	var zero T
	if flag != zero {
		*value = flag
	}
}

func seedOrRandom(seed uint64) uint64 {
	if seed == 0 {
		seed = rand.Uint64() >> 1 //nolint:gosec // It is not a secret.
	}
	return seed
}

func (c *processesCommand) options(progress io.Writer) processes.Options {
	seed := seedOrRandom(c.Seed)
	o := processes.Full(seed)
	if c.Short {
		o = processes.Short(seed)
	}
	set(&o.Readings, c.Readings)
	set(&o.Burst, c.Burst)
	set(&o.Workers, c.Workers)
	o.AckEarly, o.Dir, o.Progress = c.AckEarly, c.Dir, progress
	return o
}

func (c *clusterCommand) options(progress io.Writer) cluster.Options {
	seed := seedOrRandom(c.Seed)
	o := cluster.Full(seed)
	if c.Short {
		o = cluster.Short(seed)
	}
	set(&o.Rounds, c.Rounds)
	set(&o.Rate, c.Rate)
	set(&o.Down, c.Down)
	set(&o.Detect, c.Detect)
	o.Only, o.Asynchronous, o.Dir, o.Progress = c.Only, c.Asynchronous, c.Dir, progress
	return o
}

func (c *burstCommand) options(progress io.Writer) burst.Options {
	o := burst.Full()
	set(&o.Devices, c.Devices)
	set(&o.Days, c.Days)
	set(&o.Order, c.Order)
	set(&o.Senders, c.Senders)
	set(&o.Fresh, c.Fresh)
	set(&o.FreshRate, c.FreshRate)
	set(&o.Calm, c.Calm)
	set(&o.BurstWorkers, c.BurstWorkers)
	set(&o.Seed, c.Seed)
	if len(c.Workers) > 0 {
		o.Workers = c.Workers
	}
	o.DatabaseURL, o.Progress = c.DatabaseURL, progress
	return o
}
