package ops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// StreamCreated returns when the stream was created that is recorded under a name, or the zero time if none is.
func (s *Store) StreamCreated(ctx context.Context, name string) (time.Time, error) {
	created, err := s.Queries.StreamGet(ctx, s.Admission, name)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the recorded stream: %w", pg.Translate(err))
	}
	return created.UTC(), nil
}

// RecordStream records the creation time of the first stream of a name. A recorded one stays.
func (s *Store) RecordStream(ctx context.Context, name string, created time.Time) error {
	err := s.Queries.StreamInsert(ctx, s.Admission, db.StreamInsertParams{Name: name, CreatedAt: created})
	if err != nil {
		return fmt.Errorf("recording the stream: %w", pg.Translate(err))
	}
	return nil
}

// ConfirmStream records the creation time of a stream in place of the recorded one.
func (s *Store) ConfirmStream(ctx context.Context, name string, created time.Time) error {
	err := s.Queries.StreamReplace(ctx, s.Pool, db.StreamReplaceParams{Name: name, CreatedAt: created})
	if err != nil {
		return fmt.Errorf("recording the stream: %w", pg.Translate(err))
	}
	return nil
}

// RecordStreamShares records shares of the stream. A share with the sequence of a recorded one is ignored.
func (s *Store) RecordStreamShares(ctx context.Context, shares []roomsensor.StreamShare) error {
	var p db.StreamShareInsertParams
	for _, share := range shares {
		p.StreamSequences = append(p.StreamSequences, int64(share.Sequence)) //nolint:gosec // It is far below the maximum.
		p.TeamIds = append(p.TeamIds, share.Team)
		p.Bytes = append(p.Bytes, share.Bytes)
	}
	if err := s.Queries.StreamShareInsert(ctx, s.Pool, p); err != nil {
		return fmt.Errorf("recording shares of the stream: %w", pg.Translate(err))
	}
	return nil
}

// StreamShares lists all shares of the stream by sequence.
func (s *Store) StreamShares(ctx context.Context) ([]roomsensor.StreamShare, error) {
	rows, err := s.Queries.StreamShareList(ctx, s.Pool)
	if err != nil {
		return nil, fmt.Errorf("listing shares of the stream: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.StreamShare) roomsensor.StreamShare {
		sequence := uint64(row.StreamSequence) //nolint:gosec // It is not negative.
		return roomsensor.StreamShare{Sequence: sequence, Team: row.TeamID, Bytes: row.Bytes}
	}), nil
}

// DeleteStreamShares deletes the shares of uploads that the stream has no more: those below its first sequence, and of
// each team in before those below a sequence.
func (s *Store) DeleteStreamShares(ctx context.Context, first uint64, before map[uuid.UUID]uint64) error {
	p := db.StreamShareDeleteParams{TeamIds: []uuid.UUID{}, Before: []int64{}}
	p.FirstSequence = int64(first) //nolint:gosec // It is far below the maximum.
	for team, sequence := range before {
		p.TeamIds, p.Before = append(p.TeamIds, team), append(p.Before, int64(sequence)) //nolint:gosec // As first.
	}
	if err := s.Queries.StreamShareDelete(ctx, s.Pool, p); err != nil {
		return fmt.Errorf("deleting shares of the stream: %w", pg.Translate(err))
	}
	return nil
}
