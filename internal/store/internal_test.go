package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/store/pg"
)

// These give the tests of package store_test access to the times of reads on standbys, and to the pool.

// SetStandbyTimes sets how long a read waits for a standby to replay the log, and how long everything else may take.
func (s *Store) SetStandbyTimes(replay, other time.Duration) {
	s.StandbyTimes = pg.StandbyTimes{Connection: other, Replay: replay, Page: other, Export: other}
}

// HoldConnections takes all connections for pages until the test ends.
func (s *Store) HoldConnections(t *testing.T) {
	t.Helper()
	for range s.Pool.Config().MaxConns {
		conn, err := s.Pool.Acquire(t.Context())
		require.NoError(t, err)
		t.Cleanup(conn.Release)
	}
}
