package processes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"roomsensor/internal/dev/docker"
	"roomsensor/internal/dev/postgres"
)

// crash kills the server of a data directory with SIGKILL, all its processes at the same moment. postgres.Start starts
// it again on the same data. With alone, it kills only the first process, as the kernel does when memory runs out, and
// the others notice; in a container there is no such difference. It returns postgres.ErrNotRunning if no server runs.
func crash(ctx context.Context, dir string, alone bool) error {
	pid, container, err := postgres.Processes(dir)
	if err != nil {
		return err
	}
	if container != "" {
		return crashContainer(ctx, container)
	}
	pids := []int{pid}
	if !alone {
		// A suspended postmaster starts no process that the list would lack.
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("suspending PostgreSQL, process %d: %w", pid, err)
		}
		pids = append(pids, children(pid)...)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("killing PostgreSQL, process %d: %w", pid, err)
		}
	}
	return nil
}

// children returns the child processes of a process. Without /proc it returns none; PostgreSQL's children then end by
// themselves.
func children(parent int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // Only a bad pattern is an error.
	for _, path := range stats {
		stat, err := os.ReadFile(path) //nolint:gosec // A file of the kernel.
		if err != nil {
			continue // The process ended.
		}
		// The name, which can hold any character, is in parentheses; the state and the parent follow it.
		_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// crashContainer kills and removes a container. The volume with its data stays.
func crashContainer(ctx context.Context, name string) error {
	engine, err := docker.Engine(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	_, err = engine.ContainerKill(ctx, name, client.ContainerKillOptions{Signal: "SIGKILL"})
	if err == nil {
		_, err = engine.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true})
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("killing the container: %w", err)
	}
	return nil
}
