package workload

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"roomsensor/test/harness"
)

// Main is the whole program: it runs the benchmark with the arguments of the process, and exits. peers is nil if no
// other programs are measured.
func Main(peers *Peers) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := Run(ctx, os.Args[1:], os.Stdout, os.Stderr, peers)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err) // If stderr is closed, the exit code remains.
		os.Exit(1)
	}
}

// Run runs the benchmark. A row below its minimum is not an error. If a workload fails, the rows before it are printed,
// but not saved.
func Run(ctx context.Context, args []string, out, log io.Writer, peers *Peers) error {
	o, err := ParseOptions(args, log, peers != nil)
	if err != nil {
		return err
	}
	r, err := Measure(ctx, o, log, peers)
	switch {
	case err == nil:
		return errors.Join(r.Print(out), harness.Save(o.Results, r))
	case r != nil && len(r.Rows) > 0:
		err = errors.Join(err, r.Print(out))
	}
	return err
}
