package httpedge

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConcurrencyLimiter(t *testing.T) {
	t.Parallel()
	l := NewConcurrencyLimiter(2)
	releases := []func(){}
	acquire := func(keyID string) bool {
		release, ok := l.Acquire(keyID)
		if ok {
			releases = append(releases, release)
		}
		return ok
	}
	require.True(t, acquire("a"))
	require.True(t, acquire("a"))
	require.False(t, acquire("a"), "two per key")
	require.True(t, acquire("b"))
	require.Equal(t, 2, l.Running("a"))
	releases[0]()
	require.True(t, acquire("a"), "after a release")
	for _, release := range releases[1:] {
		release()
	}
	require.Empty(t, l.byKey)
}
