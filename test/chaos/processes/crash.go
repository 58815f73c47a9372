package processes

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"roomsensor/internal/dev/docker"
	"roomsensor/internal/dev/postgres"
	"roomsensor/test/proctest"
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
		pids = append(pids, proctest.Children(pid)...)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("killing PostgreSQL, process %d: %w", pid, err)
		}
	}
	return nil
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
