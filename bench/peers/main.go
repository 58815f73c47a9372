// Peers compares roomsensor with other programs that do the same work, on the same readings and in one run:
// VictoriaMetrics and InfluxDB (P1 to P4), and Telegraf (W6). `go tool task bench:peers` calls it. It is a module of
// its own, because it is not part of the tests and needs the network to build these programs.
//
//	peer.go              builds, starts and queries a peer
//	rows.go              P1 to P4
//	cells.go             readings value by value, and as lines
//	victoriametrics.go   VictoriaMetrics
//	victoriametrics_answers.go
//	influxdb.go          InfluxDB
//	influxdb_answers.go
//	telegraf.go          Telegraf, the baseline of W6
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
		_, _ = fmt.Fprintln(os.Stderr, "peers:", err) // If stderr is closed, the exit code remains.
		os.Exit(1)
	}
}

// run runs the comparison. It takes the flags of bench; -only selects W6, P.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	o, err := workload.ParseOptions(args, log)
	if err != nil {
		return err
	}
	r, err := workload.Measure(ctx, o, log, func(s *workload.Suite) []workload.Step {
		return append(workload.SetUp(s),
			workload.Step{Workload: "W6", Run: func(ctx context.Context) error { return compareTelegraf(ctx, s) }},
			workload.Step{Workload: "P", Run: func(ctx context.Context) error { return comparePeers(ctx, s) }})
	})
	if err != nil {
		return err
	}
	if err := r.Save(o.Results); err != nil {
		return err
	}
	return r.Print(out)
}
