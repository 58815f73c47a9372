package fleet

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

// Assignments reads a page of a device's assignments, the newest first. A device of another team has none.
func (s *Store) Assignments(
	ctx context.Context, teamID, deviceID uuid.UUID, q roomsensor.AssignmentQuery,
) ([]roomsensor.Assignment, error) {
	params := db.AssignmentListParams{TeamID: teamID, DeviceID: deviceID, Most: int64(q.Limit)}
	if q.After != nil {
		params.AfterStartedAt, params.AfterID = &q.After.StartedAt, &q.After.ID
	}
	rows, err := s.Queries.AssignmentList(ctx, s.Pool, params)
	if err != nil {
		return nil, fmt.Errorf("listing assignments: %w", pg.Translate(err))
	}
	return pg.Convert(rows, AssignmentOf), nil
}

// Assignment returns an assignment of any device of a team.
func (s *Store) Assignment(ctx context.Context, teamID, assignmentID uuid.UUID) (roomsensor.Assignment, error) {
	row, err := s.Queries.AssignmentGet(ctx, s.Pool, db.AssignmentGetParams{TeamID: teamID, AssignmentID: assignmentID})
	if err != nil {
		return roomsensor.Assignment{}, fmt.Errorf("reading an assignment: %w", pg.Translate(err))
	}
	return AssignmentOf(&row), nil
}

// DeviceAssignments lists all assignments of a device of any team, the newest first.
func (s *Store) DeviceAssignments(ctx context.Context, deviceID uuid.UUID) ([]roomsensor.Assignment, error) {
	if _, err := s.ownedDevice(ctx, s.Pool, deviceID); err != nil {
		return nil, err
	}
	rows, err := s.Queries.AssignmentListByDevice(ctx, s.Pool, deviceID)
	if err != nil {
		return nil, fmt.Errorf("listing assignments: %w", pg.Translate(err))
	}
	return pg.Convert(rows, AssignmentOf), nil
}

// AssignmentTeam returns the team of an assignment of any team.
func (s *Store) AssignmentTeam(ctx context.Context, id uuid.UUID) (uuid.UUID, error) {
	team, err := s.Queries.AssignmentGetTeam(ctx, s.Pool, id)
	if err != nil {
		return uuid.Nil, pg.TranslateByID(err, "reading the team of an assignment", roomsensor.KindAssignment, id.String())
	}
	return team, nil
}

// StartAssignment starts an assignment of a device of a team. It ignores ID and EndedAt of its argument. It returns an
// AssignmentConflictError if the device has an assignment at the start or later.
func (s *Store) StartAssignment(
	ctx context.Context, teamID uuid.UUID, a roomsensor.Assignment,
) (started roomsensor.Assignment, err error) {
	err = s.InChange(ctx, "starting an assignment", func(tx pgx.Tx) error {
		if err := s.lockTeamDevice(ctx, tx, teamID, a.DeviceID); err != nil {
			return err
		}
		started, err = s.insertAssignment(ctx, tx, teamID, a)
		return err
	})
	return started, err
}

// EndAssignment ends an assignment of a team at a time. It returns an AssignmentConflictError if the assignment has
// ended already, or started at that time or later.
func (s *Store) EndAssignment(
	ctx context.Context, teamID, id uuid.UUID, at time.Time,
) (ended roomsensor.Assignment, err error) {
	err = s.InChange(ctx, "ending an assignment", func(tx pgx.Tx) error {
		ended, err = s.endAssignment(ctx, tx, teamID, id, at)
		return err
	})
	return ended, err
}

// TransferAssignment ends an assignment of a team, and starts another one of the same device at the same instant, which
// is the StartedAt of next. It ignores ID, DeviceID and EndedAt of next. Both happen or none. Its conflicts are those
// of EndAssignment: nothing can overlap the new assignment, because the old one was open.
func (s *Store) TransferAssignment(
	ctx context.Context, teamID, id uuid.UUID, next roomsensor.Assignment,
) (ended, started roomsensor.Assignment, err error) {
	err = s.InChange(ctx, "transferring an assignment", func(tx pgx.Tx) error {
		before, err := s.Queries.AssignmentGet(ctx, tx, db.AssignmentGetParams{TeamID: teamID, AssignmentID: id})
		if err != nil {
			return pg.TranslateByID(err, "reading an assignment", roomsensor.KindAssignment, id.String())
		}
		// No other assignment of the device can start in between.
		if err := s.lockTeamDevice(ctx, tx, teamID, before.DeviceID); err != nil {
			return err
		}
		if ended, err = s.endAssignment(ctx, tx, teamID, id, next.StartedAt); err != nil {
			return err
		}
		next.DeviceID = before.DeviceID
		started, err = s.insertAssignment(ctx, tx, teamID, next)
		return err
	})
	return ended, started, err
}

// insertAssignment inserts an open assignment of a device, which the transaction has locked.
func (s *Store) insertAssignment(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, a roomsensor.Assignment,
) (roomsensor.Assignment, error) {
	other, err := s.Queries.AssignmentGetOverlap(ctx, tx, db.AssignmentGetOverlapParams{
		TeamID: teamID, DeviceID: a.DeviceID, StartedAt: a.StartedAt,
	})
	if err == nil {
		return roomsensor.Assignment{}, &roomsensor.AssignmentConflictError{
			Conflict: roomsensor.AssignmentOverlaps, Assignment: AssignmentOf(&other),
		}
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return roomsensor.Assignment{}, err
	}
	row, err := s.Queries.AssignmentInsert(ctx, tx, db.AssignmentInsertParams{
		TeamID: teamID, DeviceID: a.DeviceID, Type: string(a.Type), Label: a.Label, HomeOrTravel: string(a.HomeOrTravel),
		ExternalRef: a.ExternalRef, StartedAt: a.StartedAt,
	})
	return AssignmentOf(&row), err
}

// endAssignment ends an assignment in a transaction.
func (s *Store) endAssignment(
	ctx context.Context, tx pgx.Tx, teamID, id uuid.UUID, at time.Time,
) (roomsensor.Assignment, error) {
	row, err := s.Queries.AssignmentLock(ctx, tx, db.AssignmentLockParams{TeamID: teamID, AssignmentID: id})
	if err != nil {
		return roomsensor.Assignment{}, pg.TranslateByID(err, "reading an assignment", roomsensor.KindAssignment, id.String())
	}
	conflict := &roomsensor.AssignmentConflictError{Assignment: AssignmentOf(&row)}
	switch {
	case row.EndedAt != nil:
		conflict.Conflict = roomsensor.AssignmentEnded
		return roomsensor.Assignment{}, conflict
	case !at.After(row.StartedAt):
		conflict.Conflict = roomsensor.AssignmentStartedLater
		return roomsensor.Assignment{}, conflict
	}
	row, err = s.Queries.AssignmentEnd(ctx, tx, db.AssignmentEndParams{TeamID: teamID, AssignmentID: id, EndedAt: at})
	return AssignmentOf(&row), err
}

// lockTeamDevice locks a device of a team until the transaction ends.
func (s *Store) lockTeamDevice(ctx context.Context, tx pgx.Tx, teamID, deviceID uuid.UUID) error {
	if _, err := s.Queries.DeviceLock(ctx, tx, db.DeviceLockParams{TeamID: teamID, DeviceID: deviceID}); err != nil {
		return pg.TranslateByID(err, "locking a device", roomsensor.KindDevice, deviceID.String())
	}
	return nil
}

// AssignmentOf converts a row.
func AssignmentOf(row *db.Assignment) roomsensor.Assignment {
	return roomsensor.Assignment{
		ID: row.ID, DeviceID: row.DeviceID, Type: roomsensor.AssignmentType(row.Type), Label: row.Label,
		HomeOrTravel: roomsensor.HomeOrTravel(row.HomeOrTravel), ExternalRef: row.ExternalRef,
		StartedAt: row.StartedAt.UTC(), EndedAt: pg.UTC(row.EndedAt),
	}
}
