package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// Assignments lists a page of a device's history. Whether the device is the
// team's is not told: a foreign one has no history.
func (s *Store) Assignments(
	ctx context.Context, teamID, deviceID uuid.UUID, q roomsensor.AssignmentQuery,
) ([]roomsensor.Assignment, error) {
	params := db.AssignmentListParams{TeamID: teamID, DeviceID: deviceID, Most: int64(q.Limit)}
	if q.After != nil {
		params.AfterStartedAt, params.AfterID = &q.After.StartedAt, &q.After.ID
	}
	rows, err := s.queries.AssignmentList(ctx, s.pool, params)
	if err != nil {
		return nil, fmt.Errorf("listing assignments: %w", translate(err))
	}
	return mapped(rows, assignment), nil
}

// Assignment finds an assignment of any device of a team.
func (s *Store) Assignment(ctx context.Context, teamID, assignmentID uuid.UUID) (roomsensor.Assignment, error) {
	row, err := s.queries.AssignmentGet(ctx, s.pool, db.AssignmentGetParams{TeamID: teamID, AssignmentID: assignmentID})
	if err != nil {
		return roomsensor.Assignment{}, fmt.Errorf("reading an assignment: %w", translate(err))
	}
	return assignment(&row), nil
}

func assignment(row *db.Assignment) roomsensor.Assignment {
	return roomsensor.Assignment{
		ID: row.ID, DeviceID: row.DeviceID, Type: roomsensor.AssignmentType(row.Type), Label: row.Label,
		HomeOrTravel: roomsensor.HomeOrTravel(row.HomeOrTravel), ExternalRef: row.ExternalRef,
		StartedAt: row.StartedAt.UTC(), EndedAt: utc(row.EndedAt),
	}
}

func utc(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	u := at.UTC()
	return &u
}
