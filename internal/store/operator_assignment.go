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

// StartAssignment opens a block of a device. ID and EndedAt of the argument
// are not looked at.
func (s *Store) StartAssignment(
	ctx context.Context, a roomsensor.Assignment,
) (started roomsensor.Assignment, err error) {
	err = s.inTx(ctx, "starting an assignment", func(tx pgx.Tx) error {
		if _, err := s.queries.DeviceLockAny(ctx, tx, a.DeviceID); err != nil {
			return orUnknownDevice(err, a.DeviceID)
		}
		other, err := s.queries.AssignmentOverlap(ctx, tx, db.AssignmentOverlapParams{
			DeviceID: a.DeviceID, StartedAt: a.StartedAt,
		})
		if err == nil {
			return overlap(&other)
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

func overlap(other *db.Assignment) error {
	if other.EndedAt == nil {
		return refused("Device %s has the open assignment %s since %s. End it first: roomsensor assignment end %s.",
			other.DeviceID, other.ID, roomsensor.FormatTime(other.StartedAt), other.ID)
	}
	return refused("Device %s had the assignment %s from %s until %s. Start at its end or later.",
		other.DeviceID, other.ID, roomsensor.FormatTime(other.StartedAt), roomsensor.FormatTime(*other.EndedAt))
}

// EndAssignment closes a block at an instant.
func (s *Store) EndAssignment(
	ctx context.Context, id uuid.UUID, at time.Time,
) (ended roomsensor.Assignment, err error) {
	err = s.inTx(ctx, "ending an assignment", func(tx pgx.Tx) error {
		open, err := s.queries.AssignmentLockAny(ctx, tx, id)
		switch {
		case err != nil:
			return orUnknown(err, "reading an assignment",
				"There is no assignment %s. roomsensor assignment list DEVICE_ID shows a device's.", id)
		case open.EndedAt != nil:
			return refused("Assignment %s ended at %s already.", id, roomsensor.FormatTime(*open.EndedAt))
		case !at.After(open.StartedAt):
			return refused("Assignment %s started at %s. Choose a later end.", id, roomsensor.FormatTime(open.StartedAt))
		}
		row, err := s.queries.AssignmentEnd(ctx, tx, db.AssignmentEndParams{AssignmentID: id, EndedAt: at})
		ended = assignment(&row)
		return err
	})
	return ended, err
}

// DeviceAssignments lists every block of a device, newest first.
func (s *Store) DeviceAssignments(ctx context.Context, deviceID uuid.UUID) ([]roomsensor.Assignment, error) {
	if _, err := s.ownedDevice(ctx, s.pool, deviceID); err != nil {
		return nil, err
	}
	rows, err := s.queries.AssignmentListAny(ctx, s.pool, deviceID)
	if err != nil {
		return nil, fmt.Errorf("listing assignments: %w", translate(err))
	}
	return mapped(rows, assignment), nil
}
