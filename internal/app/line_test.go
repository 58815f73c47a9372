package app_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/procs"
)

// newLine opens a way to a server, which the test can cut.
func newLine(t *testing.T, server string) *procs.Line {
	t.Helper()
	l, err := procs.NewLine(t.Context(), server)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}
