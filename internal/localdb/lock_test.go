package localdb

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLockIsHeldByOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, &progress{})
	require.NoError(t, err)
	_, err = tryLock(path)
	require.ErrorIs(t, err, syscall.EWOULDBLOCK)

	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = lock(ctx, path, &progress{})
	require.ErrorIs(t, err, context.DeadlineExceeded)

	unlock()
	unlock, err = lock(t.Context(), path, &progress{})
	require.NoError(t, err)
	unlock()
}

func TestLockOfADeletedFileDoesNotCount(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	require.True(t, isAt(f, path))
	require.NoError(t, os.Remove(path))
	require.False(t, isAt(f, path))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.False(t, isAt(f, path))
}
