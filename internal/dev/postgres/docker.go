package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"roomsensor/internal/dev/docker"
)

const (
	// pullSilence is the time without progress after which a pull fails and the next option is tried.
	pullSilence = 45 * time.Second
	// containerTimeout is the limit for a container to create its data and accept connections.
	containerTimeout = time.Minute
	// postgresPort is the port inside the container.
	postgresPort = "5432/tcp"
	// sharedMemory is for parallel queries; Docker's default of 64 MiB is too small for a large one.
	sharedMemory = 256 << 20
	// imageData is where the image keeps its data.
	imageData = "/var/lib/postgresql/data"
)

// containerName is the name of the container and of the volume of a data directory.
func (d *dataDir) containerName() string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, d.path)
	return fmt.Sprintf("roomsensor-localdb-%016x", h.Sum64())
}

// pull pulls the image if it is missing.
func (s starter) pull(ctx context.Context, image string) error {
	return docker.Pull(ctx, image, pullSilence, func() (done func()) {
		s.progress.Log("pulling the image %s", image)
		return s.progress.During("pulling the image")
	})
}

// startContainer uses Docker and creates the data.
func (s starter) startContainer(ctx context.Context) (*state, error) {
	st := &state{Image: image(), How: "Docker, image " + image(), Password: newPassword()}
	if err := s.pull(ctx, st.Image); err != nil {
		return nil, err
	}
	// A volume that an earlier directory of the same name left behind has a password that is lost.
	if err := errors.Join(stopContainer(ctx, s.dir), removeVolume(ctx, s.dir)); err != nil {
		return nil, err
	}
	return s.runContainer(ctx, st)
}

// runContainer starts the container of a state, and creates it if it is missing.
func (s starter) runContainer(ctx context.Context, st *state) (*state, error) {
	if err := s.pull(ctx, st.Image); err != nil {
		return nil, err
	}
	s.progress.Log("starting a container of %s", st.Image)
	defer s.progress.During("starting the container")()
	running, err := testcontainers.Run(ctx, st.Image,
		testcontainers.WithReuseByName(s.dir.containerName()),
		testcontainers.WithExposedPorts(postgresPort),
		testcontainers.WithEnv(map[string]string{"POSTGRES_PASSWORD": st.Password, "POSTGRES_USER": superuser}),
		testcontainers.WithCmd(s.arguments()...),
		testcontainers.WithHostConfigModifier(s.hostConfig),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("running the container: %w", err), stopContainer(ctx, s.dir))
	}
	port, err := running.MappedPort(ctx, postgresPort)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading the container's port: %w", err), stopContainer(ctx, s.dir))
	}
	st.Port = int(port.Num())
	if err := await(ctx, st.urlOf("postgres"), containerTimeout); err != nil {
		return nil, errors.Join(fmt.Errorf("in the container: %w", err), stopContainer(ctx, s.dir))
	}
	return st, s.dir.save(st)
}

// arguments returns the arguments of the server in the container: its settings.
func (s starter) arguments() []string {
	args := []string{"postgres"}
	settings := s.settings()
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// hostConfig keeps the data in a volume and publishes the port on 127.0.0.1 only.
func (s starter) hostConfig(host *container.HostConfig) {
	host.ShmSize = sharedMemory
	host.Mounts = append(host.Mounts,
		mount.Mount{Type: mount.TypeVolume, Source: s.dir.containerName(), Target: imageData})
	host.PortBindings = network.PortMap{
		network.MustParsePort(postgresPort): {{HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1})}},
	}
}

// stopContainer stops and removes the container of a data directory. The volume with its data stays.
func stopContainer(ctx context.Context, d *dataDir) error {
	// Also after the caller's context ended: nothing else would stop the container.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout+docker.EngineTimeout)
	defer cancel()
	engine, err := docker.Engine(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	seconds := int(stopTimeout.Seconds())
	// SIGINT makes PostgreSQL close its connections and stop; SIGTERM would wait for them.
	_, err = engine.ContainerStop(ctx, d.containerName(), client.ContainerStopOptions{Signal: "SIGINT", Timeout: &seconds})
	if err == nil {
		_, err = engine.ContainerRemove(ctx, d.containerName(), client.ContainerRemoveOptions{})
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("stopping the container: %w", err)
	}
	return nil
}

// removeVolume deletes the data of a container.
func removeVolume(ctx context.Context, d *dataDir) error {
	engine, err := docker.Engine(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	_, err = engine.VolumeRemove(ctx, d.containerName(), client.VolumeRemoveOptions{})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("removing the container's data: %w", err)
	}
	return nil
}
