package localdb

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

	"roomsensor/internal/docker"
)

// Crash ends the server of a data directory with kill -9, all its processes at the same moment. Start brings it up
// again on the same data. With alone the first process goes alone, as when the system runs out of memory, and its
// children notice; in a container there is no such difference. It is for trials of what a crash does to others.
func Crash(ctx context.Context, dir string, alone bool) error {
	d := &dataDir{path: dir}
	s, err := d.load()
	if err != nil {
		return err
	}
	if s == nil {
		return ErrNotRunning
	}
	if s.Image != "" {
		return crashContainer(ctx, d)
	}
	return d.crash(alone)
}

func (d *dataDir) crash(alone bool) error {
	pid, ok := d.postmaster()
	if !ok {
		return ErrNotRunning
	}
	pids := []int{pid}
	if !alone {
		pids = append(pids, children(pid)...)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("killing PostgreSQL, process %d: %w", pid, err)
		}
	}
	return nil
}

// children returns the processes that a process started and that still run. Where there is no /proc it finds none, and
// PostgreSQL's children go by themselves.
func children(parent int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // Only a bad pattern is an error.
	for _, path := range stats {
		stat, err := os.ReadFile(path) //nolint:gosec // Of the kernel.
		if err != nil {
			continue // It ended meanwhile.
		}
		// The name, which may hold anything, stands in parentheses; behind it come the state and the parent.
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

// crashContainer kills the container of a data directory and removes it; the volume with the data stays.
func crashContainer(ctx context.Context, d *dataDir) error {
	engine, err := docker.Engine(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	_, err = engine.ContainerKill(ctx, d.containerName(), client.ContainerKillOptions{Signal: "SIGKILL"})
	if err == nil {
		_, err = engine.ContainerRemove(ctx, d.containerName(), client.ContainerRemoveOptions{Force: true})
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("killing the container: %w", err)
	}
	return nil
}
