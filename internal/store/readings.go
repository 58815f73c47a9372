package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// Readings lists a page of a device's readings, newest bucket first.
func (s *Store) Readings(
	ctx context.Context, teamID, deviceID uuid.UUID, q roomsensor.ReadingQuery,
) ([]roomsensor.Reading, error) {
	to := q.Window.To
	if q.Before != nil && q.Before.Before(to) {
		to = *q.Before // Keyset: the window ends where the page before ended.
	}
	// In the order in which ReadingPage numbers its parameters, see db.ReadingPageParams.
	rows, err := s.pool.Query(ctx, db.ReadingPage, deviceID, teamID, q.Window.From, to, int64(q.Limit))
	if err != nil {
		return nil, fmt.Errorf("reading a page: %w", translate(err))
	}
	defer rows.Close()
	page := make([]roomsensor.Reading, 0, q.Limit)
	for rows.Next() {
		page = append(page, rawReading(rows))
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading a page: %w", translate(err))
	}
	return page, nil
}
