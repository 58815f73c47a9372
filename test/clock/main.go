// Clock runs the tests at another date: `go tool task test:clock -- 2028-02-29T12:00:00Z [ARGUMENTS OF go test]`.
//
// The clock of Go programs is shifted by a modified copy of the standard library's time package, which `go build`
// reads through an overlay. So the tests and the programs that they build see the shifted clock. The clock of
// PostgreSQL is shifted by preload/clock.c, because libfaketime breaks PostgreSQL's timeouts. The monotonic clock is
// not shifted: timers and timeouts use it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) == 0 {
		return errors.New("name a time, for example 2028-02-29T12:00:00Z")
	}
	at, err := time.Parse(time.RFC3339, args[0])
	if err != nil {
		return fmt.Errorf("reading the time: %w", err)
	}
	// Always the same directory: its path is part of the modified package, so a new one would rebuild everything.
	dir := filepath.Join(os.TempDir(), "roomsensor-test-clock")
	offset := strconv.Itoa(int(time.Until(at).Seconds()))
	overlay, err := writeOverlay(ctx, dir, offset)
	if err != nil {
		return fmt.Errorf("writing the overlay: %w", err)
	}
	library := filepath.Join(dir, "clock.so")
	//nolint:gosec // The path is this program's own.
	compiler := exec.CommandContext(ctx, "cc", "-shared", "-fPIC", "-O2", "-o", library, "test/clock/preload/clock.c")
	compiler.Stderr = os.Stderr
	if err := compiler.Run(); err != nil {
		return fmt.Errorf("compiling test/clock/preload/clock.c: %w", err)
	}
	//nolint:gosec // The arguments are the caller's own.
	cmd := exec.CommandContext(ctx, "go", append([]string{"run", "./test/run"}, args[1:]...)...)
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay,
		"LD_PRELOAD="+library, "CLOCK_OFFSET="+offset)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd.Run() //nolint:wrapcheck // The tests have printed what failed.
}

// nowStart is the beginning of time.Now. The modified one adds the offset, except in a bubble of testing/synctest.
const (
	nowStart = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	shifted  = nowStart + "\tif !runtimeIsBubbled() {\n\t\tsec += clockOffset\n\t}\n"
	// read uses the functions with which the package reads time zones: it cannot import os.
	read = `
var clockOffset = func() int64 {
	fd, err := open(%q)
	if err != nil {
		return 0
	}
	defer closefd(fd)
	text := make([]byte, 20)
	n, _ := read(fd, text)
	offset, _ := atoi(text[:n])
	return int64(offset)
}()
`
)

// writeOverlay writes the modified package and returns the path of the overlay.
func writeOverlay(ctx context.Context, dir, offset string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", err //nolint:wrapcheck // The caller wraps it.
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original) //nolint:gosec // A file of Go.
	if err != nil {
		return "", err //nolint:wrapcheck // The caller wraps it.
	}
	if !strings.Contains(string(source), nowStart) {
		return "", fmt.Errorf("time.Now in %s is not the one that this program knows how to change", original)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // Programs of other users read the offset.
		return "", err //nolint:wrapcheck // The caller wraps it.
	}
	overlay := filepath.Join(dir, "overlay.json")
	modified := filepath.Join(dir, "time.go")
	number := filepath.Join(dir, "offset")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: modified}})
	if err != nil {
		return "", err //nolint:wrapcheck // The caller wraps it.
	}
	text := strings.Replace(string(source), nowStart, shifted, 1) + fmt.Sprintf(read, number)
	for path, content := range map[string]string{number: offset, modified: text, overlay: string(replace)} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil { //nolint:gosec // As above.
			return "", err //nolint:wrapcheck // The caller wraps it.
		}
	}
	return overlay, nil
}
