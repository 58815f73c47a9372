// Cmd runs the trials: `go tool task chaos`, `cluster`, `burst`, `abuse` and `fleet` call it. A report goes to stdout
// and ends with the verdict: `N lost, N duplicated, N wrong, N phantom`. That of abuse is `N failed requests, p99 N.Nx,
// N processes over their limit`, and that of fleet and burst `N lost, N duplicated, N wrong, N failed requests, p99
// visible N.Ns`. Progress goes to stderr. The exit code is 1 unless the trial passed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"roomsensor/test/chaos/abuse"
	"roomsensor/test/chaos/cluster"
	"roomsensor/test/chaos/fleet"
	"roomsensor/test/chaos/processes"
	"roomsensor/test/harness"
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// commands are the trials.
type commands struct {
	Processes command[processes.Options] `cmd:"" help:"Kill processes and disturb connections while uploads are sent."`
	Cluster   command[cluster.Options]   `cmd:"" help:"Kill and disconnect members of a cluster in containers while uploads are sent."`
	Burst     command[fleet.Options]     `cmd:"" help:"Run fleet with devices that come back at once after days."`
	Abuse     command[abuse.Options]     `cmd:"" help:"Overload the service beside a well-behaved tenant."`
	Fleet     command[fleet.Options]     `cmd:"" help:"Upload as a large fleet does, while its teams poll and export."`
	Attacker  attackerCommand            `cmd:"" hidden:""`
}

// command is a trial with its options.
type command[O any] struct {
	Options O      `embed:""`
	Short   bool   `help:"Run a shorter trial, with every kind of fault or attack."`
	Report  string `help:"File for the report as JSON (default: the name of the task and .json)." placeholder:"FILE"`

	full, short func(seed uint64) O
	report      string // default of Report
}

// newCommands returns the trials with their default options.
func newCommands() *commands {
	return &commands{
		Processes: command[processes.Options]{full: processes.Full, short: processes.Short, report: "chaos.json"},
		Cluster:   command[cluster.Options]{full: cluster.Full, short: cluster.Short, report: "cluster.json"},
		Burst:     command[fleet.Options]{full: fleet.Burst, short: fleet.ShortBurst, report: "burst.json"},
		Abuse:     command[abuse.Options]{full: abuse.Full, short: abuse.Short, report: "abuse.json"},
		Fleet:     command[fleet.Options]{full: fleet.Full, short: fleet.Short, report: "fleet.json"},
	}
}

// BeforeApply sets the options that the flags then change.
func (c *command[O]) BeforeApply(k *kong.Context) error {
	c.Options, c.Report = c.full(randomSeed()), c.report
	if isShort(k) {
		c.Options = c.short(randomSeed())
	}
	return nil
}

// attackerCommand is the process of an attacker, which the abuse trial starts.
type attackerCommand struct {
	Attack string `arg:""`
}

func randomSeed() uint64 { return rand.Uint64() >> 1 } //nolint:gosec // It is not a secret.

func isShort(k *kong.Context) bool {
	return slices.ContainsFunc(k.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == "short" })
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
	c := newCommands()
	exited := -1
	parser, err := kong.New(c, kong.Name("chaos"), kong.Writers(out, progress),
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
		o := c.Processes.Options
		o.Progress = progress
		if err := o.Validate(); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(progress, "seed %d; the plan:\n", o.Seed) // Progress is optional.
		if err := processes.NewPlan(o).Print(progress); err != nil || o.PrintPlan {
			return err
		}
		r, err := processes.Run(ctx, o)
		return finish(r, err, c.Processes.Report, out)
	case "cluster":
		o := c.Cluster.Options
		o.Progress = progress
		_, _ = fmt.Fprintf(progress, "seed %d\n", o.Seed) // Progress is optional.
		r, err := cluster.Run(ctx, o)
		return finish(r, err, c.Cluster.Report, out)
	case "abuse":
		o := c.Abuse.Options
		o.Progress = progress
		r, err := abuse.Run(ctx, o)
		return finish(r, err, c.Abuse.Report, out)
	case "fleet":
		return runFleet(ctx, c.Fleet.Options, c.Fleet.Report, out, progress)
	case "attacker <attack>":
		return abuse.Attack(ctx, c.Attacker.Attack, os.Stdin, out)
	default:
		return runFleet(ctx, c.Burst.Options, c.Burst.Report, out, progress)
	}
}

func runFleet(ctx context.Context, o fleet.Options, path string, out, progress io.Writer) error {
	o.Progress = progress
	_, _ = fmt.Fprintf(progress, "seed %d\n", o.Seed) // Progress is optional.
	r, err := fleet.Run(ctx, o)
	return finish(r, err, path, out)
}

// finish saves and prints a report, if there is one. It returns an error if the trial failed or its cleanup did.
func finish[R interface {
	comparable
	report
}](r R, err error, path string, out io.Writer,
) error {
	var none R
	if r == none {
		return err
	}
	if err := harness.Save(path, r); err != nil {
		return err
	}
	return errors.Join(r.Print(out), r.Failure(), err)
}
