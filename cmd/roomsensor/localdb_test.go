package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLocaldbThatDoesNotRun(t *testing.T) {
	t.Parallel()
	env := map[string]string{"DATA_DIR": filepath.Join(t.TempDir(), "none")}
	r := execute(t, env, nil, "localdb", "url")
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, r.err, "roomsensor localdb start")
	require.Empty(t, r.out)

	r = execute(t, env, nil, "localdb", "stop")
	require.Equal(t, exitOK, r.code, r.err)
	require.Equal(t, "{\"database_url\":null}\n", r.out)
}
