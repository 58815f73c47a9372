package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"roomsensor/internal/dev/postgres"
	"roomsensor/test/proctest"
)

// ServerCPU returns the processor time that the database server has used, in all its processes. ok is false if it does
// not run on this machine, outside of a container.
func (e *Env) ServerCPU(ctx context.Context) (used time.Duration, ok bool, err error) {
	var backend int
	if err := e.Pool.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return 0, false, fmt.Errorf("reading the process of a connection: %w", err)
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", backend))
	if err != nil || !strings.HasPrefix(string(name), "postgres") {
		return 0, false, nil //nolint:nilerr // There is no such process of PostgreSQL here.
	}
	postmaster, err := proctest.Parent(backend)
	if err != nil {
		return 0, false, err
	}
	usage, err := proctest.TreeUsage(postmaster)
	return usage.CPU, err == nil, err
}

// dropCaches is the file that makes the kernel forget the files in memory.
const dropCaches = "/proc/sys/vm/drop_caches"

// ColdObstacle returns why RestartCold is not possible, or an empty text.
func (e *Env) ColdObstacle() string {
	if e.Server.DataDir == "" {
		return "-database-url names a server that must not be restarted"
	}
	file, err := os.OpenFile(dropCaches, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Sprintf("the caches of the kernel cannot be dropped: %v", err)
	}
	_ = file.Close() // Nothing was written.
	return ""
}

// RestartCold restarts the benchmark's own server. While it is stopped, the kernel drops its caches. Connections break.
func (e *Env) RestartCold(ctx context.Context) error {
	if err := postgres.Stop(ctx, e.Server.DataDir); err != nil {
		return err
	}
	syscall.Sync() // Pages that are not on disk yet would stay in memory.
	if err := os.WriteFile(dropCaches, []byte("3"), 0); err != nil {
		return fmt.Errorf("dropping the caches: %w", err)
	}
	server, err := postgres.Start(ctx, postgres.Options{DataDir: e.Server.DataDir, Settings: e.settings})
	if err != nil {
		return err
	}
	if server.URL != e.Server.URL {
		return errors.New("the port of the database server was taken while it was restarted")
	}
	e.Pool.Reset()
	return nil
}
