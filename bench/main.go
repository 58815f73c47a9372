// Bench compares roomsensor with what the same work costs with PostgreSQL's own tools, side by side in one run on one
// server. With -peers it also compares with Telegraf, VictoriaMetrics and InfluxDB. `go tool task bench`, `bench:quick`
// and `bench:peers` call it. README.md explains the ratios.
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

	"roomsensor/bench/peers"
	"roomsensor/bench/workload"
	"roomsensor/test/harness"
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
	r, err := workload.Measure(ctx, o, log, peers.Compare)
	if err != nil {
		return err
	}
	return errors.Join(r.Print(out), harness.Save(o.Results, r))
}
