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

// TrimRejects deletes the rejects that are past their time, and the oldest
// beyond the size, and tells what went and what is left.
func (s *Store) TrimRejects(ctx context.Context, limits roomsensor.RejectLimits) (t roomsensor.RejectTrim, err error) {
	t.Aged, err = s.queries.RejectTrimAge(ctx, s.pool, limits.Keep.Seconds())
	if err == nil {
		t.Crowded, err = s.queries.RejectTrimSize(ctx, s.pool, limits.MaxBytes)
	}
	var left db.RejectTotalsRow
	if err == nil {
		left, err = s.queries.RejectTotals(ctx, s.pool)
	}
	if err != nil {
		return t, fmt.Errorf("trimming rejects: %w", translate(err))
	}
	t.Kept, t.Bytes = left.Kept, left.Bytes
	return t, nil
}

func arrival(row *db.RejectedUpload) roomsensor.Arrival {
	return roomsensor.Arrival{
		At: row.ReceivedAt.UTC(), Sequence: uint64(row.StreamSequence), Team: row.TeamID, //nolint:gosec // Counts from 1.
	}
}
