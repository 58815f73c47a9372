package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// Assignments reads a page of a device's assignments, the newest first. A device of another team has none.
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
	return convert(rows, assignment), nil
}

// Assignment returns an assignment of any device of a team.
func (s *Store) Assignment(ctx context.Context, teamID, assignmentID uuid.UUID) (roomsensor.Assignment, error) {
	row, err := s.queries.AssignmentGet(ctx, s.pool, db.AssignmentGetParams{TeamID: teamID, AssignmentID: assignmentID})
	if err != nil {
		return roomsensor.Assignment{}, fmt.Errorf("reading an assignment: %w", translate(err))
	}
	return assignment(&row), nil
}

// DeviceAssignments lists all assignments of a device of any team, the newest first.
func (s *Store) DeviceAssignments(ctx context.Context, deviceID uuid.UUID) ([]roomsensor.Assignment, error) {
	if _, err := s.ownedDevice(ctx, s.pool, deviceID); err != nil {
		return nil, err
	}
	rows, err := s.queries.AssignmentListByDevice(ctx, s.pool, deviceID)
	if err != nil {
		return nil, fmt.Errorf("listing assignments: %w", translate(err))
	}
	return convert(rows, assignment), nil
}

// StartAssignment starts an assignment of a device. It ignores ID and EndedAt of its argument. It returns an
// AssignmentConflictError if the device has an assignment at the start or later.
func (s *Store) StartAssignment(
	ctx context.Context, a roomsensor.Assignment,
) (started roomsensor.Assignment, err error) {
	err = s.inTx(ctx, "starting an assignment", func(tx pgx.Tx) error {
		if err := s.lockDevice(ctx, tx, a.DeviceID); err != nil {
			return err
		}
		other, err := s.queries.AssignmentGetOverlap(ctx, tx, db.AssignmentGetOverlapParams{
			DeviceID: a.DeviceID, StartedAt: a.StartedAt,
		})
		if err == nil {
			return &roomsensor.AssignmentConflictError{
				Conflict: roomsensor.AssignmentOverlaps, Assignment: assignment(&other),
			}
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		row, err := s.queries.AssignmentInsert(ctx, tx, db.AssignmentInsertParams{
			DeviceID: a.DeviceID, Type: string(a.Type), Label: a.Label, HomeOrTravel: string(a.HomeOrTravel),
			ExternalRef: a.ExternalRef, StartedAt: a.StartedAt,
		})
		started = assignment(&row)
		return err
	})
	return started, err
}

// EndAssignment ends an assignment at a time. It returns an AssignmentConflictError if the assignment has ended
// already, or started at that time or later.
func (s *Store) EndAssignment(
	ctx context.Context, id uuid.UUID, at time.Time,
) (ended roomsensor.Assignment, err error) {
	err = s.inTx(ctx, "ending an assignment", func(tx pgx.Tx) error {
		row, err := s.queries.AssignmentLockByID(ctx, tx, id)
		if err != nil {
			return translateByID(err, "reading an assignment", roomsensor.KindAssignment, id.String())
		}
		conflict := &roomsensor.AssignmentConflictError{Assignment: assignment(&row)}
		switch {
		case row.EndedAt != nil:
			conflict.Conflict = roomsensor.AssignmentEnded
			return conflict
		case !at.After(row.StartedAt):
			conflict.Conflict = roomsensor.AssignmentStartedLater
			return conflict
		}
		row, err = s.queries.AssignmentEnd(ctx, tx, db.AssignmentEndParams{AssignmentID: id, EndedAt: at})
		ended = assignment(&row)
		return err
	})
	return ended, err
}

func assignment(row *db.Assignment) roomsensor.Assignment {
	return roomsensor.Assignment{
		ID: row.ID, DeviceID: row.DeviceID, Type: roomsensor.AssignmentType(row.Type), Label: row.Label,
		HomeOrTravel: roomsensor.HomeOrTravel(row.HomeOrTravel), ExternalRef: row.ExternalRef,
		StartedAt: row.StartedAt.UTC(), EndedAt: utc(row.EndedAt),
	}
}
