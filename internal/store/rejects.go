package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// Rejects lists rejects without their payload, newest first.
func (s *Store) Rejects(ctx context.Context, q roomsensor.RejectQuery) ([]roomsensor.Reject, error) {
	rows, err := s.queries.RejectList(ctx, s.pool, db.RejectListParams{
		TeamID: q.TeamID, Reason: (*string)(q.Reason), HardwareID: q.HardwareID, Since: q.Since,
		Most: int64(q.Limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing rejects: %w", translate(err))
	}
	return mapped(rows, func(row *db.RejectListRow) roomsensor.Reject {
		return roomsensor.Reject{
			ID: row.ID, Arrival: arrival(&db.RejectedUpload{
				ReceivedAt: row.ReceivedAt, StreamSequence: row.StreamSequence, TeamID: row.TeamID,
			}),
			HardwareID: row.HardwareID, Reason: roomsensor.Reason(row.Reason), Detail: row.Detail,
			ReplayedAt: utc(row.ReplayedAt),
		}
	}), nil
}

// Reject finds a reject with its payload.
func (s *Store) Reject(ctx context.Context, id uuid.UUID) (roomsensor.Reject, error) {
	row, err := s.queries.RejectGet(ctx, s.pool, id)
	if err != nil {
		return roomsensor.Reject{}, orUnknown(err, "reading a reject",
			"There is no reject %s. roomsensor rejects list shows them.", id)
	}
	return roomsensor.Reject{
		ID: row.ID, Arrival: arrival(&row), HardwareID: row.HardwareID, Reason: roomsensor.Reason(row.Reason),
		Detail: row.Detail, Payload: row.Payload, ReplayedAt: utc(row.ReplayedAt),
	}, nil
}

// TrimRejects deletes the oldest rejects beyond some bytes and tells how many
// those were.
func (s *Store) TrimRejects(ctx context.Context, mostBytes int64) (deleted int64, err error) {
	deleted, err = s.queries.RejectTrim(ctx, s.pool, mostBytes)
	if err != nil {
		return 0, fmt.Errorf("trimming rejects: %w", translate(err))
	}
	return deleted, nil
}

func arrival(row *db.RejectedUpload) roomsensor.Arrival {
	return roomsensor.Arrival{
		At: row.ReceivedAt.UTC(), Sequence: uint64(row.StreamSequence), Team: row.TeamID, //nolint:gosec // Counts from 1.
	}
}
