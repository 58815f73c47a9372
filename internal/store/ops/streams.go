package ops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"roomsensor/db"
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
