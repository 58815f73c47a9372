package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// Rejects lists rejects without their payload, the newest first.
func (s *Store) Rejects(ctx context.Context, q roomsensor.RejectQuery) ([]roomsensor.Reject, error) {
	rows, err := s.queries.RejectList(ctx, s.pool, db.RejectListParams{
		TeamID: q.TeamID, Reason: (*string)(q.Reason), HardwareID: q.HardwareID, Since: q.Since,
		Most: int64(q.Limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing rejects: %w", translate(err))
	}
	return convert(rows, func(row *db.RejectListRow) roomsensor.Reject {
		return reject(&db.RejectedUpload{
			ID: row.ID, ReceivedAt: row.ReceivedAt, StreamSequence: row.StreamSequence, TeamID: row.TeamID,
			HardwareID: row.HardwareID, Reason: row.Reason, Detail: row.Detail, ReplayedAt: row.ReplayedAt,
		})
	}), nil
}

// Reject returns a reject with its payload.
func (s *Store) Reject(ctx context.Context, id uuid.UUID) (roomsensor.Reject, error) {
	row, err := s.queries.RejectGet(ctx, s.pool, id)
	if err != nil {
		return roomsensor.Reject{}, translateByID(err, "reading a reject", roomsensor.KindReject, id.String())
	}
	return reject(&row), nil
}

// SkipUpload stores the reject of an upload that an operator sets aside, and returns it as it is stored. If a worker
// stored the same reject first, that one stays.
func (s *Store) SkipUpload(ctx context.Context, r roomsensor.Reject) (roomsensor.Reject, error) {
	if err := s.queries.RejectInsert(ctx, s.pool, rejectParams([]roomsensor.Reject{r})); err != nil {
		return r, fmt.Errorf("storing a reject: %w", translate(err))
	}
	row, err := s.queries.RejectGetByMessage(ctx, s.pool, db.RejectGetByMessageParams{
		ReceivedAt: r.Arrival.At, Reason: string(r.Reason),
		StreamSequence: int64(r.Arrival.Sequence), //nolint:gosec // Counts from 1.
	})
	if err != nil {
		return r, fmt.Errorf("reading a reject: %w", translate(err))
	}
	return reject(&row), nil
}

// TrimRejects deletes the rejects that exceed the limits, and returns what it deleted and what is left.
func (s *Store) TrimRejects(ctx context.Context, limits roomsensor.RejectLimits) (t roomsensor.RejectTrim, err error) {
	t.Aged, err = s.queries.RejectTrimAge(ctx, s.pool, limits.Keep.Seconds())
	if err == nil {
		t.Evicted, err = s.queries.RejectTrimSize(ctx, s.pool, limits.MaxBytes)
	}
	var left db.RejectCountRow
	if err == nil {
		left, err = s.queries.RejectCount(ctx, s.pool)
	}
	if err != nil {
		return t, fmt.Errorf("trimming rejects: %w", translate(err))
	}
	t.Kept, t.Bytes = left.Kept, left.Bytes
	return t, nil
}

func reject(row *db.RejectedUpload) roomsensor.Reject {
	return roomsensor.Reject{
		ID: row.ID, HardwareID: row.HardwareID, Reason: roomsensor.Reason(row.Reason), Detail: row.Detail,
		Arrival: roomsensor.Arrival{
			At: row.ReceivedAt.UTC(), Sequence: uint64(row.StreamSequence), Team: row.TeamID, //nolint:gosec // Counts from 1.
		},
		Payload: row.Payload, ReplayedAt: utc(row.ReplayedAt),
	}
}

// rejectParams returns rejects as the arrays of RejectInsert. The zero UUID and the empty string stand for null.
func rejectParams(rejects []roomsensor.Reject) (p db.RejectInsertParams) {
	for i := range rejects {
		r := &rejects[i]
		p.ReceivedAt = append(p.ReceivedAt, r.Arrival.At)
		p.StreamSequence = append(p.StreamSequence, int64(r.Arrival.Sequence)) //nolint:gosec // Counts from 1.
		p.Reason = append(p.Reason, string(r.Reason))
		p.Detail = append(p.Detail, r.Detail)
		team, hardware := uuid.Nil, ""
		if r.Arrival.Team != nil {
			team = *r.Arrival.Team
		}
		if r.HardwareID != nil {
			hardware = *r.HardwareID
		}
		p.TeamID = append(p.TeamID, team)
		p.HardwareID = append(p.HardwareID, hardware)
		p.Payload = append(p.Payload, r.Payload)
	}
	return p
}
