package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/command"
	"roomsensor/internal/dev/docker"
)

func TestContainerKeepsItsData(t *testing.T) {
	t.Parallel()
	engine, err := docker.Engine(t.Context())
	if err != nil {
		t.Skip("needs Docker")
	}
	_, err = engine.ImageInspect(t.Context(), image())
	require.NoError(t, engine.Close())
	if err != nil {
		t.Skip("needs an image of TimescaleDB in Docker, see ROOMSENSOR_TIMESCALEDB_IMAGE")
	}
	d := newDataDir(t)
	s := starter{dir: d, options: options(t, d), progress: &command.Progress{W: t.Output()}}
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
