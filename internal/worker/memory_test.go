package worker

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/source"
)

// memoryStore is a store in memory, for tests that choose what fails.
type memoryStore struct {
	installations map[string][]roomsensor.Installation
	sources       map[uuid.UUID]roomsensor.Source
	aliases       map[roomsensor.TeamAlias]string
	counts        []roomsensor.SourceCount
	before        func(context.Context, roomsensor.Batch) error                // is called before a batch is stored; may be nil
	ranges        []roomsensor.Window                                          // of existing chunks
	trim          func(roomsensor.RejectLimits) (roomsensor.RejectTrim, error) // may be nil
	purgeFeed     func() error                                                 // may be nil

	mu      sync.Mutex
	content *content
	shares  []roomsensor.StreamShare
	batches int
	opened  int // calls of OpenChunks
	replays map[uuid.UUID]int
}

func newMemoryStore(installations map[string][]roomsensor.Installation) *memoryStore {
	return &memoryStore{installations: installations, content: newContent(), replays: map[uuid.UUID]int{}}
}

// newWriter returns the writer of a worker.
func newWriter(s Store) *writer {
	return &writer{tables: s, log: zerolog.Nop(), outcomes: &outcomes{parkAfter: DefaultParkAfter}, chunks: &chunkLimit{store: s}, mappings: &source.Mappings{}}
}

// writer returns a writer to the store.
func (s *memoryStore) writer() *writer { return newWriter(s) }

// Chunks returns chunks of a week.
func (s *memoryStore) Chunks(context.Context) (roomsensor.Chunks, error) {
	return roomsensor.Chunks{Interval: 7 * 24 * time.Hour, Ranges: s.ranges}, nil
}

// OpenChunks allows everything: tests of the real database have the limit.
func (s *memoryStore) OpenChunks(_ context.Context, _ uuid.UUID, uploads [][]time.Time, _ int) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	return slices.Repeat([]bool{true}, len(uploads)), nil
}

func (s *memoryStore) RecordStreamShares(_ context.Context, shares []roomsensor.StreamShare) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shares = append(s.shares, shares...)
	return nil
}

func (s *memoryStore) StreamShares(context.Context) ([]roomsensor.StreamShare, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.shares), nil
}

func (s *memoryStore) DeleteStreamShares(_ context.Context, first uint64, before map[uuid.UUID]uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shares = slices.DeleteFunc(s.shares, func(share roomsensor.StreamShare) bool {
		return share.Sequence < first || share.Sequence < before[share.Team]
	})
	return nil
}

func (s *memoryStore) Ping(context.Context) error { return nil }

func (s *memoryStore) Sources(context.Context, []uuid.UUID) (map[uuid.UUID]roomsensor.Source, error) {
	return s.sources, nil
}

func (s *memoryStore) AliasedUnits(
	context.Context, []roomsensor.TeamAlias,
) (map[roomsensor.TeamAlias]string, error) {
	return s.aliases, nil
}

func (s *memoryStore) RecordSources(_ context.Context, counts []roomsensor.SourceCount) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts = append(s.counts, counts...)
	return nil
}

func (s *memoryStore) Installations(_ context.Context, ids []string) (map[string][]roomsensor.Installation, error) {
	found := map[string][]roomsensor.Installation{}
	for _, id := range ids {
		if list, ok := s.installations[id]; ok {
			found[id] = list
		}
	}
	return found, nil
}

func (s *memoryStore) WriteBatch(ctx context.Context, b roomsensor.Batch) (int64, error) {
	if s.before != nil {
		if err := s.before(ctx, b); err != nil {
			return 0, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches++
	for i := range b.Rows {
		key := rowKey(b.Rows[i].DeviceID, b.Rows[i].MeasuredAt)
		old, ok := s.content.rows[key]
		if !ok {
			old = b.Rows[i].Measurement
		}
		s.content.rows[key] = roomsensor.Merge(old, b.Rows[i].Measurement)
	}
	for i := range b.Seen {
		list := []roomsensor.DeviceHeartbeat{b.Seen[i]}
		if old, ok := s.content.heartbeats[b.Seen[i].DeviceID.String()]; ok {
			list = append(list, old)
		}
		s.content.heartbeats[b.Seen[i].DeviceID.String()] = mergeHeartbeats(list)[0]
	}
	for i := range b.Rejects {
		key := rejectKey(b.Rejects[i].Arrival.Sequence, b.Rejects[i].Reason)
		if _, ok := s.content.rejects[key]; !ok {
			s.content.rejects[key] = string(b.Rejects[i].Payload)
		}
	}
	return int64(len(b.Rows)), nil
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

func (s *memoryStore) TrimRejects(_ context.Context, limits roomsensor.RejectLimits) (roomsensor.RejectTrim, error) {
	if s.trim == nil {
		return roomsensor.RejectTrim{}, nil
	}
	return s.trim(limits)
}

func (s *memoryStore) PurgeFeed(context.Context) error {
	if s.purgeFeed == nil {
		return nil
	}
	return s.purgeFeed()
}

// snapshot returns a copy of the content.
func (s *memoryStore) snapshot() *content {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &content{maps.Clone(s.content.rows), maps.Clone(s.content.heartbeats), maps.Clone(s.content.rejects)}
}
