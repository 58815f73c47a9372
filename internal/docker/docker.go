// Package docker asks the Docker engine of this machine for what a container needs: that it is there, and that it has
// an image or can pull it.
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

// EngineTimeout is for an engine to say that it is there; DOCKER_HOST may name one that is not.
const EngineTimeout = 10 * time.Second

// prepare sets testcontainers up once, before it reads its configuration. Its reaper, which ends containers with the
// process that made them, must not run: some are to outlive it, and the reaper's own image may not be had. And what is
// printed is the caller's to say.
var prepare = sync.OnceValue(func() error {
	log.SetDefault(log.NewNoopLogger())
	return os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
})

// Engine connects to the engine. Close what it returns.
func Engine(ctx context.Context) (*testcontainers.DockerClient, error) {
	if err := prepare(); err != nil {
		return nil, fmt.Errorf("preparing for Docker: %w", err)
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

// Pull gets the image where it is missing; it calls pulling then, and what that returns at the end. It fails at once
// when there is no way to the registry, and after a silence when one takes the request and sends nothing.
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
		return fmt.Errorf("looking for the image %s: %w", image, err)
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

// receive pulls the image and calls heard for everything that arrives.
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
