package localdb

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestContainerKeepsItsData(t *testing.T) {
	t.Parallel()
	docker, err := engine(t.Context())
	if err != nil {
		t.Skip("needs Docker")
	}
	_, err = docker.ImageInspect(t.Context(), image())
	require.NoError(t, docker.Close())
	if err != nil {
		t.Skip("needs an image of TimescaleDB in Docker, see ROOMSENSOR_TIMESCALEDB_IMAGE")
	}
	d := newDataDir(t)
	s := starter{dir: d, options: options(t, d), progress: &progress{w: t.Output()}}
	_, err = s.startContainer(t.Context())
	require.NoError(t, err)
	first, err := Start(t.Context(), options(t, d))
	require.NoError(t, err)
	execute(t, first.URL, "CREATE EXTENSION timescaledb; CREATE TABLE kept AS SELECT 1 AS n")
	require.Equal(t, "0", query(t, first.URL, "SELECT current_setting('timescaledb.max_background_workers')"))

	found, err := Find(t.Context(), d.path)
	require.NoError(t, err)
	require.Equal(t, first.URL, found.URL)
	require.NoError(t, Stop(t.Context(), d.path))
	require.NoError(t, Stop(t.Context(), d.path), "stopping twice")
	_, err = Find(t.Context(), d.path)
	require.ErrorIs(t, err, ErrNotRunning)

	again, err := Start(t.Context(), options(t, d))
	require.NoError(t, err)
	require.Equal(t, "1", query(t, again.URL, "SELECT n::text FROM kept"))
}

// TestPullFromASilentRegistry has a registry that takes the connection and never says a word.
func TestPullFromASilentRegistry(t *testing.T) {
	t.Parallel()
	docker, err := engine(t.Context())
	if err != nil {
		t.Skip("needs Docker")
	}
	require.NoError(t, docker.Close())
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, silent.Close()) }()

	started := time.Now()
	err = pull(t.Context(), silent.Addr().String()+"/timescaledb:1", time.Second, &progress{w: t.Output()})
	require.ErrorContains(t, err, "cannot be pulled")
	require.Less(t, time.Since(started), engineTimeout)
}
