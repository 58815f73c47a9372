package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// Pool is the state of a pool of database connections.
type Pool struct {
	Name        string // main, admission, export, or standby or standby export with host and port
	InUse, Idle int    // connections
	Max         int
	Waits       int64         // requests for a connection that had to wait for one, since the start
	WaitTime    time.Duration // of these, in total
}

// Pools returns the state of the pools of the role, without a request to the database.
func (s *Store) Pools() []Pool {
	pools := []Pool{poolState("main", s.pool)}
	if s.admission != s.pool {
		pools = append(pools, poolState("admission", s.admission))
	}
	if s.exports != nil {
		pools = append(pools, poolState("export", s.exports))
	}
	for _, b := range s.standbys.list {
		pools = append(pools, poolState("standby "+b.name, b.pool), poolState("standby export "+b.name, b.exports))
	}
	return pools
}

func poolState(name string, pool *pgxpool.Pool) Pool {
	stat := pool.Stat()
	return Pool{
		Name: name, InUse: int(stat.AcquiredConns()), Idle: int(stat.IdleConns()), Max: int(stat.MaxConns()),
		Waits: stat.EmptyAcquireCount(), WaitTime: stat.EmptyAcquireWaitTime(),
	}
}

// Statistics are figures of the whole database, for metrics.
type Statistics struct {
	Layout
	AllChunks      int   // of all tables
	MaxLocks       int   // max_locks_per_transaction
	Bytes          int64 // of the whole database
	Connections    int64 // to all databases of the server
	MaxConnections int64 // for roles that are not superusers
	Devices        map[roomsensor.Status]int64
	ExpiringKeys   int64 // ingest keys that expire before a time and have no successor
}

// Statistics reads the figures of the whole database at now, and counts the ingest keys that expire before a time. It
// uses a connection for admission, one at a time, so that it takes none from the writes of a worker. Every migration
// must be applied.
func (s *Store) Statistics(ctx context.Context, now, expiring time.Time) (stats Statistics, err error) {
	if stats.Layout, err = s.layout(ctx, s.admission); err != nil {
		return stats, err
	}
	database, err := s.queries.DatabaseGet(ctx, s.admission)
	if err != nil {
		return stats, fmt.Errorf("reading the edition: %w", translate(err))
	}
	chunks, err := s.queries.ChunkCount(ctx, s.admission)
	if err != nil {
		return stats, fmt.Errorf("counting chunks: %w", translate(err))
	}
	usage, err := s.queries.DatabaseGetUsage(ctx, s.admission)
	if err != nil {
		return stats, fmt.Errorf("reading the size of the database: %w", translate(err))
	}
	staleFrom, offlineAfter := roomsensor.StatusAges()
	devices, err := s.queries.DeviceCountByStatus(ctx, s.admission, db.DeviceCountByStatusParams{
		StaleFrom: now.Add(-staleFrom), OfflineBefore: now.Add(-offlineAfter),
	})
	if err != nil {
		return stats, fmt.Errorf("counting devices: %w", translate(err))
	}
	stats.ExpiringKeys, err = s.queries.IngestKeyCountExpiring(ctx, s.admission, expiring)
	if err != nil {
		return stats, fmt.Errorf("counting expiring ingest keys: %w", translate(err))
	}
	stats.AllChunks, stats.MaxLocks = int(chunks), int(database.MaxLocks)
	stats.Bytes, stats.Connections, stats.MaxConnections = usage.Bytes, usage.Connections, usage.MaxConnections
	stats.Devices = map[roomsensor.Status]int64{
		roomsensor.Online: devices.Online, roomsensor.Stale: devices.Stale,
		roomsensor.Offline: devices.Devices - devices.Online - devices.Stale,
	}
	return stats, nil
}

// ExpiringAPIKeys counts the API keys of all teams that expire before a time and have no successor.
func (s *Store) ExpiringAPIKeys(ctx context.Context, before time.Time) (int64, error) {
	keys, err := s.queries.APIKeyCountExpiring(ctx, s.admission, before)
	if err != nil {
		return 0, fmt.Errorf("counting expiring API keys: %w", translate(err))
	}
	return keys, nil
}
