package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// EachReading calls a function for every reading of a page of a device's, newest
// bucket first, while further ones arrive. The function may not keep it.
func (s *Store) EachReading(
	ctx context.Context, teamID, deviceID uuid.UUID, q roomsensor.ReadingQuery, do func(*roomsensor.Reading),
) error {
	to := q.Window.To
	if q.Before != nil && q.Before.Before(to) {
		to = *q.Before // Keyset: the window ends where the page before ended.
	}
	// In the order in which ReadingPage numbers its parameters, see db.ReadingPageParams.
	rows, err := s.pool.Query(ctx, db.ReadingPage, deviceID, teamID, q.Window.From, to, int64(q.Limit))
	if err != nil {
		return fmt.Errorf("reading a page: %w", translate(err))
	}
	defer rows.Close()
	var reading roomsensor.Reading // One for all.
	for rows.Next() {
		reading = rawReading(rows)
		do(&reading)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("reading a page: %w", translate(err))
	}
	return nil
}
