package feed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// PurgeFeedAt purges the change feed as at a time.
func (s *Store) PurgeFeedAt(t *testing.T, now time.Time) {
	t.Helper()
	require.NoError(t, s.purgeFeed(t.Context(), now))
}
