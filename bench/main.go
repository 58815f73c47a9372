// Bench compares roomsensor with what the same work costs with PostgreSQL's own tools, side by side in one run on one
// server. `go tool task bench` and `go tool task bench:quick` call it. README.md explains the ratios.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"roomsensor/bench/workload"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err) // If stderr is closed, the exit code remains.
		os.Exit(1)
	}
}

// run runs the benchmark. A row below its minimum is not an error.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	o, err := workload.ParseOptions(args, log)
	if err != nil {
		return err
	}
	r, err := workload.Measure(ctx, o, log, workload.All)
	if err != nil {
		return err
	}
	if err := r.Save(o.Results); err != nil {
		return err
	}
	return r.Print(out)
}
