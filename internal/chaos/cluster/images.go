package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"roomsensor/internal/docker"
)

// Images are those of the members.
type Images struct {
	Database string `json:"database"`
	Queue    string `json:"queue"`
	Service  string `json:"service"`
}

// Standins are what deploy/standin/build makes for machines that reach no registry.
var Standins = Images{
	Database: "roomsensor-standin/timescaledb:pg17",
	Queue:    "roomsensor-standin/nats:" + server.VERSION,
}

// Wanted are the images that the environment names, or the official ones.
func Wanted() Images {
	return Images{
		Database: cmp.Or(os.Getenv("ROOMSENSOR_TIMESCALEDB_IMAGE"), "timescale/timescaledb:2.29.0-pg17"),
		Queue:    cmp.Or(os.Getenv("ROOMSENSOR_NATS_IMAGE"), "nats:"+server.VERSION),
		Service:  cmp.Or(os.Getenv("ROOMSENSOR_IMAGE"), "roomsensor:dev"),
	}
}

// pullSilence is how long a pull may make no progress before the trial goes without.
const pullSilence = 30 * time.Second

var errNoImage = errors.New("no image of the database and the queue can be had: run deploy/standin/build, " +
	"or name some with ROOMSENSOR_TIMESCALEDB_IMAGE and ROOMSENSOR_NATS_IMAGE")

// Find returns the wanted images where Docker has them or can pull them, and the stand-ins else.
func Find(ctx context.Context, say func(format string, args ...any)) (Images, error) {
	i := Wanted()
	for _, kind := range []struct {
		image   *string
		standin string
	}{{&i.Database, Standins.Database}, {&i.Queue, Standins.Queue}} {
		err := docker.Pull(ctx, *kind.image, pullSilence, func() func() { return func() {} })
		if err == nil {
			continue
		}
		if !has(ctx, kind.standin) {
			return i, fmt.Errorf("%w: %w", errNoImage, err)
		}
		say("taking the stand-in %s: %s is not here and cannot be pulled", kind.standin, *kind.image)
		*kind.image = kind.standin
	}
	if !has(ctx, i.Service) {
		return i, fmt.Errorf("the image %s is missing: run go tool task image", i.Service)
	}
	return i, nil
}

func has(ctx context.Context, image string) bool {
	return exec.CommandContext(ctx, "docker", "image", "inspect", image).Run() == nil //nolint:gosec // The trial's.
}
