package ingest

import (
	"context"
	"maps"
	"sync"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// memoryStore keeps the tables in memory, where a test wants to decide what
// fails; the other tests run on the real database.
type memoryStore struct {
	units map[string][]roomsensor.Installation
	fail  func(context.Context, roomsensor.Batch) error // before a batch; may be nil

	mu      sync.Mutex
	table   *table
	batches int
	replays map[uuid.UUID]int
	trim    func(roomsensor.RejectLimits) (roomsensor.RejectTrim, error) // may be nil
}

func newMemoryStore(units map[string][]roomsensor.Installation) *memoryStore {
	return &memoryStore{units: units, table: newTable(), replays: map[uuid.UUID]int{}}
}

func (s *memoryStore) Ping(context.Context) error { return nil }

func (s *memoryStore) Installations(_ context.Context, ids []string) (map[string][]roomsensor.Installation, error) {
	found := map[string][]roomsensor.Installation{}
	for _, id := range ids {
		if list, ok := s.units[id]; ok {
			found[id] = list
		}
	}
	return found, nil
}

func (s *memoryStore) WriteBatch(ctx context.Context, b roomsensor.Batch) (int64, error) {
	if s.fail != nil {
		if err := s.fail(ctx, b); err != nil {
			return 0, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches++
	for i := range b.Rows {
		s.upsert(&b.Rows[i])
	}
	for i := range b.Seen {
		seen := []roomsensor.DeviceSeen{b.Seen[i]}
		if old, ok := s.table.seen[b.Seen[i].DeviceID.String()]; ok {
			seen = append(seen, old)
		}
		s.table.seen[b.Seen[i].DeviceID.String()] = newest(seen)[0]
	}
	for i := range b.Rejects {
		key := rejectKey(b.Rejects[i].Arrival.Sequence, b.Rejects[i].Reason)
		if _, ok := s.table.rejects[key]; !ok {
			s.table.rejects[key] = string(b.Rejects[i].Payload)
		}
	}
	return int64(len(b.Rows)), nil
}

func (s *memoryStore) TrimRejects(_ context.Context, limits roomsensor.RejectLimits) (roomsensor.RejectTrim, error) {
	if s.trim == nil {
		return roomsensor.RejectTrim{}, nil
	}
	return s.trim(limits)
}

func (s *memoryStore) upsert(row *roomsensor.DeviceMeasurement) {
	key := rowKey(row.DeviceID, row.MeasuredAt)
	old, ok := s.table.rows[key]
	if !ok {
		old = row.Measurement
	}
	s.table.rows[key] = roomsensor.Unite(old, row.Measurement)
}

func (s *memoryStore) WriteReplay(ctx context.Context, id uuid.UUID, b roomsensor.Batch) error {
	b.Rejects = nil
	if _, err := s.WriteBatch(ctx, b); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replays[id]++
	return nil
}

// snapshot is the tables as they are now.
func (s *memoryStore) snapshot() *table {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := newTable()
	maps.Copy(copied.rows, s.table.rows)
	maps.Copy(copied.seen, s.table.seen)
	maps.Copy(copied.rejects, s.table.rejects)
	return copied
}
