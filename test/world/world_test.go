package world

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

var (
	first      = flag.Uint64("first", 1, "first seed of TestSeeds")
	seeds      = flag.Uint64("seeds", 100, "number of seeds of TestSeeds")
	printSteps = flag.Bool("steps", false, "print the steps of TestSeeds")
	part       = flag.Bool("part", false, "run the seeds of TestSeeds in this process, and print what they gave")
)

func runSeed(t *testing.T, seed uint64) (result Result) {
	t.Helper()
	defer func() {
		if reason := recover(); reason != nil {
			panic(fmt.Sprintf("seed %d: %v", seed, reason))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		var log func(string, ...any)
		if *printSteps {
			log = t.Logf
		}
		var err error
		result, err = Run(seed, log)
		require.NoError(t, err)
	})
	return result
}

// regressions are seeds that found a fault: 130161 one of the model, whose worker opened a deleted consumer.
var regressions = []uint64{130161}

// TestRepeated runs seeds twice: one seed is one run.
func TestRepeated(t *testing.T) {
	t.Parallel()
	for _, seed := range append([]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, regressions...) {
		once := runSeed(t, seed)
		require.False(t, once.Failed(), &once)
		require.Equal(t, once, runSeed(t, seed), "of the same seed")
	}
}

// line is what a part prints for each seed.
const line = "seed %d trace %016x steps %d failed %t\n"

// TestSeeds runs seeds in as many processes as there are cores. A bubble runs faster on one core.
func TestSeeds(t *testing.T) {
	t.Parallel()
	if *part {
		runPart(t)
		return
	}
	began := time.Now()
	processes := uint64(runtime.NumCPU())
	each := (*seeds + processes - 1) / processes
	var group errgroup.Group
	var steps atomic.Int64
	for i := range processes {
		from, to := *first+i*each, min(*first+(i+1)*each, *first+*seeds)
		if from < to {
			group.Go(func() error { return startPart(t, from, to-from, &steps) })
		}
	}
	require.NoError(t, group.Wait())
	t.Logf("no fault in %d seeds from %d on: %d steps in %.0f s", *seeds, *first, steps.Load(), time.Since(began).Seconds())
}

// runPart runs seeds until one of them finds a fault.
func runPart(t *testing.T) {
	t.Helper()
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(800)
	for seed := *first; seed < *first+*seeds; seed++ {
		r := runSeed(t, seed)
		_, _ = fmt.Fprintf(os.Stdout, line, r.Seed, r.Trace, r.Steps, r.Failed())
		if r.Failed() {
			t.Fatalf("%s\nRepeat it with `go tool task simulate-world -- -first %d -seeds 1 -steps`.", &r, r.Seed)
		}
	}
}

// startPart runs seeds in another process, prints what that prints, and adds the number of its steps.
func startPart(t *testing.T, from, number uint64, steps *atomic.Int64) error {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], //nolint:gosec // This program.
		"-test.run=^TestSeeds$", "-test.v", "-test.timeout=0", "-part",
		fmt.Sprint("-first=", from), fmt.Sprint("-seeds=", number), fmt.Sprint("-steps=", *printSteps))
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		var seed, trace uint64
		var count int64
		var failed bool
		if _, err := fmt.Sscanf(lines.Text()+"\n", line, &seed, &trace, &count, &failed); err != nil {
			_, _ = fmt.Fprintln(os.Stdout, lines.Text())
		}
		steps.Add(count)
	}
	return errors.Join(lines.Err(), command.Wait())
}
