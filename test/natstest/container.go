package natstest

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"

	"roomsensor/internal/dev/docker"
	"roomsensor/test/proctest"
)

const (
	// natsPort is the port inside the container.
	natsPort = "4222/tcp"
	// pullSilence is the time without progress after which a pull fails and the test is skipped.
	pullSilence = 10 * time.Second
	// patience bounds every wait for the engine and for the server.
	patience = proctest.Patience
	// configuration is the same as that of a server in this process.
	configuration = "jetstream { store_dir: /data, sync_interval: always }\n"
)

// image returns the Docker image of NATS: ROOMSENSOR_NATS_IMAGE, if it is set.
func image() string { return cmp.Or(os.Getenv("ROOMSENSOR_NATS_IMAGE"), "nats:2.15.2") }

// newContainer starts a server in a container. Shutdown kills it, and it is removed when the test ends. The test is
// skipped if Docker cannot supply the image.
func newContainer(t testing.TB) *Server {
	t.Helper()
	if docker.Pull(t.Context(), image(), pullSilence, func() func() { return func() {} }) != nil {
		t.Skip("needs an image of NATS in Docker, see ROOMSENSOR_NATS_IMAGE")
	}
	address, err := proctest.FreeAddress()
	require.NoError(t, err)
	running, err := testcontainers.Run(t.Context(), image(),
		testcontainers.WithCmd("-c", "/nats.conf"),
		testcontainers.WithFiles(testcontainers.ContainerFile{
			Reader: strings.NewReader(configuration), ContainerFilePath: "/nats.conf", FileMode: 0o644,
		}),
		testcontainers.WithExposedPorts(natsPort),
		testcontainers.WithHostConfigModifier(publish(netip.MustParseAddrPort(address))),
	)
	testcontainers.CleanupContainer(t, running)
	require.NoError(t, err)
	return serve(t, &contained{running, t, address})
}

// publish publishes the port of NATS at an address that does not change when the container is started again.
func publish(address netip.AddrPort) func(*container.HostConfig) {
	_, port, _ := net.SplitHostPort(address.String())
	return func(host *container.HostConfig) {
		host.PortBindings = network.PortMap{
			network.MustParsePort(natsPort): {{HostIP: address.Addr(), HostPort: port}},
		}
	}
}

// contained is a server in a container.
type contained struct {
	testcontainers.Container
	t       testing.TB
	address string
}

func (c *contained) start(t testing.TB) string {
	t.Helper()
	if !c.IsRunning() {
		require.NoError(t, c.Start(t.Context()))
	}
	url := "nats://" + c.address
	require.Eventually(t, func() bool {
		nc, err := nats.Connect(url)
		if err == nil {
			nc.Close()
		}
		return err == nil
	}, patience, 10*time.Millisecond)
	return url
}

func (c *contained) stop() {
	c.t.Helper()
	atOnce := time.Duration(0)
	require.NoError(c.t, c.Stop(context.WithoutCancel(c.t.Context()), &atOnce))
}
