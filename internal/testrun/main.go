// Testrun runs the tests of the module on a TimescaleDB that it gets for them and ends afterwards; `go tool task test`
// calls it. Arguments go to `go test`; without any all packages are tested, and what the tests prove of the contract is
// compared with docs/conformance.md. `testrun conformance` writes that page; `testrun clean` ends the server that plain
// `go test` runs share, and removes its data.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"roomsensor/internal/localdb"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdout)
	stop()
	os.Exit(code)
}

// run returns the exit code: that of the tests, or 1.
func run(ctx context.Context, args []string, out io.Writer) int {
	do := test
	if len(args) == 1 {
		switch args[0] {
		case "clean":
			do = clean
		case "conformance":
			do = conform
		}
	}
	code, err := do(ctx, args, out)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err) // There is nowhere else to say it.
		return max(code, 1)
	}
	return code
}

// clean removes what plain `go test` runs share.
func clean(ctx context.Context, _ []string, _ io.Writer) (int, error) {
	dir, err := localdb.TestDataDir()
	if err != nil {
		return 1, err
	}
	return 0, localdb.Remove(ctx, dir)
}
