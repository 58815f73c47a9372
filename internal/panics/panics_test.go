package panics_test

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/panics"
)

func TestRecover(t *testing.T) {
	t.Parallel()
	require.NoError(t, panics.Recover(func() error { return nil }))
	require.ErrorIs(t, panics.Recover(func() error { return io.EOF }), io.EOF)

	err := panics.Recover(func() error { panic("a bug") })
	panicked, ok := errors.AsType[*panics.Error](err)
	require.True(t, ok)
	require.EqualError(t, err, "panic: a bug")
	require.Contains(t, string(panicked.Stack), "panics_test.go")
}
