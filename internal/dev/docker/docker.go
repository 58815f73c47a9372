// Package docker connects to the Docker engine of this machine and pulls images.
package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// EngineTimeout is the limit for the engine to answer; DOCKER_HOST may name one that does not run.
const EngineTimeout = 10 * time.Second

// prepare configures testcontainers once, before it reads its configuration. It disables the reaper, which removes
// containers when the process that created them ends: some must outlive it, and the reaper's image may be unavailable.
// It also silences the library's own log; the caller reports progress.
var prepare = sync.OnceValue(func() error {
	log.SetDefault(log.NewNoopLogger())
	return os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
})

// Engine connects to the engine. The caller closes the client. An engine on another machine is an error.
func Engine(ctx context.Context) (*testcontainers.DockerClient, error) {
	if err := prepare(); err != nil {
		return nil, fmt.Errorf("configuring testcontainers: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, EngineTimeout)
	defer cancel()
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, fmt.Errorf("no Docker engine answers: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if host := docker.DaemonHost(); !strings.HasPrefix(host, "unix://") {
		_ = docker.Close()
		return nil, fmt.Errorf("the Docker engine %s is not on this machine", host)
	}
	return docker, nil
}

var errSilentPull = errors.New("the registry sends nothing")

// Pull pulls the image if it is missing. It calls pulling before it starts, and the returned function at the end. It
// fails at once if the registry cannot be reached, and after the duration silence without any data from it.
func Pull(ctx context.Context, image string, silence time.Duration, pulling func() (done func())) error {
	docker, err := Engine(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = docker.Close() }()
	_, err = docker.ImageInspect(ctx, image)
	if err == nil {
		return nil
	}
	if !errdefs.IsNotFound(err) {
		return fmt.Errorf("inspecting the image %s: %w", image, err)
	}
	defer pulling()()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(silence, func() { cancel(errSilentPull) })
	defer watchdog.Stop()
	if err := receive(ctx, docker, image, func() { watchdog.Reset(silence) }); err != nil {
		if errors.Is(context.Cause(ctx), errSilentPull) {
			err = errSilentPull
		}
		return fmt.Errorf("the image %s cannot be pulled: %w", image, err)
	}
	return nil
}

// receive pulls the image and calls heard for every message of the engine.
func receive(ctx context.Context, docker *testcontainers.DockerClient, image string, heard func()) error {
	response, err := docker.ImagePull(ctx, image, client.ImagePullOptions{})
	if err != nil {
		return err //nolint:wrapcheck // Pull wraps it.
	}
	for message, err := range response.JSONMessages(ctx) {
		if err != nil {
			return err
		}
		if message.Error != nil {
			return message.Error
		}
		heard()
	}
	return nil
}
