// Bench compares what the service does with what the same work costs others, side by side in one run and on one
// server. `go tool task bench` and `go tool task bench:quick` call it; README.md says what the ratios mean.
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err) // There is nowhere else to say it.
		os.Exit(1)
	}
}

// run makes a benchmark. A row that falls short is no error: it is what the table is for.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	o, err := parse(args, log)
	if err != nil {
		return err
	}
	r, err := measure(ctx, o, log)
	if err != nil {
		return err
	}
	if err := r.Save(o.results); err != nil {
		return err
	}
	return r.Print(out)
}
