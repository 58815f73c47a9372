package docker_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/internal/dev/docker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPullFromASilentRegistry uses a registry that accepts the connection and sends nothing.
func TestPullFromASilentRegistry(t *testing.T) {
	t.Parallel()
	engine, err := docker.Engine(t.Context())
	if err != nil {
		t.Skip("needs Docker")
	}
	require.NoError(t, engine.Close())
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, silent.Close()) }()

	started, pulled, ended := time.Now(), false, false
	err = docker.Pull(t.Context(), silent.Addr().String()+"/timescaledb:1", time.Second, func() func() {
		pulled = true
		return func() { ended = true }
	})
	require.ErrorContains(t, err, "cannot be pulled")
	require.Less(t, time.Since(started), docker.EngineTimeout)
	require.True(t, pulled)
	require.True(t, ended)
}
