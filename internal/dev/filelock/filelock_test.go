package filelock

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(t.Context(), path, func() {})
	require.NoError(t, err)
	_, err = Try(path)
	require.ErrorIs(t, err, ErrHeld)

	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	waited := 0
	_, err = Lock(ctx, path, func() { waited++ })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, 1, waited)

	unlock()
	unlock, err = Lock(t.Context(), path, func() {})
	require.NoError(t, err)
	unlock()
}

func TestIsAt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	require.True(t, isAt(f, path))
	require.NoError(t, os.Remove(path))
	require.False(t, isAt(f, path), "the file was deleted")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.False(t, isAt(f, path), "the path names another file")
}
