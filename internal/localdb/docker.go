package localdb

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

const (
	// engineTimeout is for an engine to say that it is there; DOCKER_HOST may name one that is not.
	engineTimeout = 10 * time.Second
	// pullSilence is how long a pull may make no progress before the next way is tried.
	pullSilence = 45 * time.Second
	// containerTimeout is for a container to make its data and to answer.
	containerTimeout = time.Minute
	// postgresPort is the port inside the container.
	postgresPort = "5432/tcp"
	// imageData is where the image keeps its data.
	imageData = "/var/lib/postgresql/data"
)

// quiet prepares testcontainers once, before it reads its configuration. The container is to outlive this process, so
// the reaper, which ends containers with the process that made them, must not run; and what is printed is progress's.
var quiet = sync.OnceValue(func() error {
	log.SetDefault(log.NewNoopLogger())
	return os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
})

// containerName is the name of the container and of the volume of a data directory.
func (d *dataDir) containerName() string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, d.path)
	return fmt.Sprintf("roomsensor-localdb-%016x", h.Sum64())
}

// engine connects to Docker.
func engine(ctx context.Context) (*testcontainers.DockerClient, error) {
	if err := quiet(); err != nil {
		return nil, fmt.Errorf("preparing for Docker: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
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

// startContainer is the way through Docker, with new data.
func (s starter) startContainer(ctx context.Context) (*state, error) {
	st := &state{Image: image(), How: "Docker, image " + image(), Password: newPassword()}
	if err := pull(ctx, st.Image, pullSilence, s.progress); err != nil {
		return nil, err
	}
	// What a directory of the same name left behind has a password that nobody knows any more.
	if err := errors.Join(stopContainer(ctx, s.dir), removeVolume(ctx, s.dir)); err != nil {
		return nil, err
	}
	return s.runContainer(ctx, st)
}

// runContainer starts the container of a state, and makes it where it is missing.
func (s starter) runContainer(ctx context.Context, st *state) (*state, error) {
	if err := pull(ctx, st.Image, pullSilence, s.progress); err != nil {
		return nil, err
	}
	s.progress.say("starting a container of %s", st.Image)
	defer s.progress.during("starting the container")()
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
		return nil, errors.Join(fmt.Errorf("asking for the container's port: %w", err), stopContainer(ctx, s.dir))
	}
	st.Port = int(port.Num())
	if err := await(ctx, st.urlOf("postgres"), containerTimeout); err != nil {
		return nil, errors.Join(fmt.Errorf("in the container: %w", err), stopContainer(ctx, s.dir))
	}
	return st, s.dir.save(st)
}

// arguments are the server's, with its settings.
func (s starter) arguments() []string {
	args := []string{"postgres"}
	settings := s.settings()
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// hostConfig keeps the data in a volume and publishes the port to this machine alone.
func (s starter) hostConfig(host *container.HostConfig) {
	host.Mounts = append(host.Mounts,
		mount.Mount{Type: mount.TypeVolume, Source: s.dir.containerName(), Target: imageData})
	host.PortBindings = network.PortMap{
		network.MustParsePort(postgresPort): {{HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1})}},
	}
}

// stopContainer ends and removes the container of a data directory; the volume with its data stays.
func stopContainer(ctx context.Context, d *dataDir) error {
	// Also after the caller gave up: nothing else would ever stop it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout+engineTimeout)
	defer cancel()
	docker, err := engine(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = docker.Close() }()
	seconds := int(stopTimeout.Seconds())
	// SIGINT makes PostgreSQL close its connections and stop; SIGTERM would wait for them.
	_, err = docker.ContainerStop(ctx, d.containerName(), client.ContainerStopOptions{Signal: "SIGINT", Timeout: &seconds})
	if err == nil {
		_, err = docker.ContainerRemove(ctx, d.containerName(), client.ContainerRemoveOptions{})
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("stopping the container: %w", err)
	}
	return nil
}

// removeVolume deletes the data of a container.
func removeVolume(ctx context.Context, d *dataDir) error {
	docker, err := engine(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = docker.Close() }()
	_, err = docker.VolumeRemove(ctx, d.containerName(), client.VolumeRemoveOptions{})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("removing the container's data: %w", err)
	}
	return nil
}
