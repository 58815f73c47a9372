// Package ingest takes uploads in and brings them into the tables. The
// Receiver puts what devices send over HTTP into the queue; the Worker takes
// it out, judges it by decision 41, and stores it in batches, each in one
// transaction that the queue hears of only after its commit.
package ingest

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Units tells where hardware units sat.
type Units interface {
	// Installations lists every interval of some units (decision 40). A unit
	// that never sat anywhere is not in the map.
	Installations(ctx context.Context, hardwareIDs []string) (map[string][]roomsensor.Installation, error)
}

// Store is what a worker needs of the tables.
type Store interface {
	Units
	// WriteBatch stores a batch in one transaction and tells how many rows of
	// readings changed. An error that is roomsensor.ErrNotStorable will stay,
	// roomsensor.ErrTooMuch may pass in parts, every other one may pass later.
	WriteBatch(ctx context.Context, batch roomsensor.Batch) (changed int64, err error)
	// TrimRejects deletes the rejects that are past their time, and the oldest
	// beyond the size, and tells what went and what is left.
	TrimRejects(ctx context.Context, limits roomsensor.RejectLimits) (roomsensor.RejectTrim, error)
	Ping(ctx context.Context) error
}

// ReplayStore is what the replay of a reject needs of the tables.
type ReplayStore interface {
	Units
	// WriteReplay stores a batch without its rejects, in one transaction, and
	// notes the time of the replay. Its errors are those of WriteBatch.
	WriteReplay(ctx context.Context, rejectID uuid.UUID, batch roomsensor.Batch) error
	Ping(ctx context.Context) error
}

// KeyStore is what a receiver needs of the tables, and goes on without.
type KeyStore interface {
	// IngestKeys lists every upload credential, revoked ones too.
	IngestKeys(ctx context.Context) ([]roomsensor.Key, error)
}
