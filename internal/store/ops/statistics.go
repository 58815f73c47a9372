package ops

import (
	"context"
	"fmt"
	"time"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// Statistics are figures of the whole database, for metrics.
type Statistics struct {
	Layout
	AllChunks      int   // of all tables
	MaxLocks       int   // max_locks_per_transaction
	Bytes          int64 // of the whole database
	Connections    int64 // to all databases of the server
	MaxConnections int64 // for roles that are not superusers
	Devices        map[roomsensor.Status]int64
	Archive        Archive
	ExpiringKeys   int64 // ingest keys that expire before a time and have no successor
}

// Statistics reads the figures of the whole database at now, and counts the ingest keys that expire before a time. It
// uses a connection for admission, one at a time, so that it takes none from the writes of a worker. Every migration
// must be applied.
func (s *Store) Statistics(ctx context.Context, now, expiring time.Time) (stats Statistics, err error) {
	if stats.Layout, err = s.layout(ctx, s.Admission); err != nil {
		return stats, err
	}
	database, err := s.Queries.DatabaseGet(ctx, s.Admission)
	if err != nil {
		return stats, fmt.Errorf("reading the edition: %w", pg.Translate(err))
	}
	chunks, err := s.Queries.ChunkCount(ctx, s.Admission)
	if err != nil {
		return stats, fmt.Errorf("counting chunks: %w", pg.Translate(err))
	}
	usage, err := s.Queries.DatabaseGetUsage(ctx, s.Admission)
	if err != nil {
		return stats, fmt.Errorf("reading the size of the database: %w", pg.Translate(err))
	}
	if stats.Archive, err = s.archive(ctx, s.Admission); err != nil {
		return stats, err
	}
	staleFrom, offlineAfter := roomsensor.StatusAges()
	devices, err := s.Queries.DeviceCountByStatus(ctx, s.Admission, db.DeviceCountByStatusParams{
		StaleFrom: now.Add(-staleFrom), OfflineBefore: now.Add(-offlineAfter),
	})
	if err != nil {
		return stats, fmt.Errorf("counting devices: %w", pg.Translate(err))
	}
	stats.ExpiringKeys, err = s.Queries.IngestKeyCountExpiring(ctx, s.Admission, expiring)
	if err != nil {
		return stats, fmt.Errorf("counting expiring ingest keys: %w", pg.Translate(err))
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
	keys, err := s.Queries.APIKeyCountExpiring(ctx, s.Admission, before)
	if err != nil {
		return 0, fmt.Errorf("counting expiring API keys: %w", pg.Translate(err))
	}
	return keys, nil
}
