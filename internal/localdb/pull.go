package localdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

var errSilentPull = errors.New("the registry sends nothing")

// pull gets the image where it is missing. It fails at once when there is no way to the registry, and after
// a silence when one takes the request and sends nothing.
func pull(ctx context.Context, image string, silence time.Duration, p *progress) error {
	docker, err := engine(ctx)
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
	p.say("pulling the image %s", image)
	defer p.during("pulling the image")()
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
		return err //nolint:wrapcheck // pull wraps it.
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
