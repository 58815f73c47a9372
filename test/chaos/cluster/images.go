package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"roomsensor/internal/dev/docker"
)

// Images are the images of the members.
type Images struct {
	Database string `json:"database"`
	Queue    string `json:"queue"`
	Service  string `json:"service"`
}

// stubImages are built by deploy/stubs/build for machines without access to an image registry.
var stubImages = Images{
	Database: "roomsensor-stub/timescaledb:pg17",
	Queue:    "roomsensor-stub/nats:" + server.VERSION,
}

// configuredImages returns the images that the environment names, or the official ones.
func configuredImages() Images {
	return Images{
		Database: cmp.Or(os.Getenv("ROOMSENSOR_TIMESCALEDB_IMAGE"), "timescale/timescaledb:2.29.0-pg17"),
		Queue:    cmp.Or(os.Getenv("ROOMSENSOR_NATS_IMAGE"), "nats:"+server.VERSION),
		Service:  cmp.Or(os.Getenv("ROOMSENSOR_IMAGE"), "roomsensor:dev"),
	}
}

// pullTimeout limits the time without progress of a pull.
const pullTimeout = 30 * time.Second

var errNoImage = errors.New("there is no image of the database or the queue: run deploy/stubs/build, " +
	"or set ROOMSENSOR_TIMESCALEDB_IMAGE and ROOMSENSOR_NATS_IMAGE")

// findImages returns the configured images if Docker has them or can pull them, and the stub images otherwise.
func findImages(ctx context.Context, logf func(format string, args ...any)) (Images, error) {
	i := configuredImages()
	for _, choice := range []struct {
		image *string
		stub  string
	}{{&i.Database, stubImages.Database}, {&i.Queue, stubImages.Queue}} {
		err := docker.Pull(ctx, *choice.image, pullTimeout, func() func() { return func() {} })
		if err == nil {
			continue
		}
		if !hasImage(ctx, choice.stub) {
			return i, fmt.Errorf("%w: %w", errNoImage, err)
		}
		logf("using the stub image %s: %s cannot be pulled", choice.stub, *choice.image)
		*choice.image = choice.stub
	}
	if !hasImage(ctx, i.Service) {
		return i, fmt.Errorf("the image %s is missing: run go tool task image", i.Service)
	}
	return i, nil
}

func hasImage(ctx context.Context, image string) bool {
	_, err := runDocker(ctx, "image", "inspect", image)
	return err == nil
}
