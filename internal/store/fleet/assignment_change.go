package fleet

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// ChangeAssignments changes assignments and devices of a team in one transaction. Before the commit, it calls accept
// with the outcome, unless accept is nil. Nothing changes if accept returns an error, which is returned as it is.
//
// It returns an AssignmentConflictError that names the stored assignment in the way: one that overlaps an assignment on
// its device, that has ended already, that started at its new end or later, or that changed since it was seen. Of a
// device that changed since it was seen, it returns ErrDeviceChanged.
func (s *Store) ChangeAssignments(
	ctx context.Context, teamID uuid.UUID, change roomsensor.AssignmentChange,
	accept func(roomsensor.AssignmentOutcome) error,
) (roomsensor.AssignmentOutcome, error) {
	devices, err := s.changedDevices(ctx, teamID, &change)
	if err != nil {
		return roomsensor.AssignmentOutcome{}, err
	}
	until := time.Now().Add(changeWait)
	for _, id := range devices {
		turn, err := s.waitForDevice(ctx, teamID, id.String(), until)
		if err != nil {
			return roomsensor.AssignmentOutcome{}, err
		}
		defer turn.Release()
	}
	c := assignmentChange{Store: s, teamID: teamID}
	err = s.InChange(ctx, "changing assignments", func(tx pgx.Tx) error {
		c.tx = tx
		for _, id := range devices { // No other assignment of the devices changes meanwhile.
			if err := s.lockTeamDevice(ctx, tx, teamID, id); err != nil {
				return err
			}
		}
		if err := c.changeAll(ctx, &change); err != nil {
			return err
		}
		if accept == nil {
			return nil
		}
		return accept(c.outcome)
	})
	if err != nil {
		return roomsensor.AssignmentOutcome{}, err
	}
	return c.outcome, nil
}

// changedDevices lists the devices of a change by id, which is the order in which they are locked. The device of an
// assignment never changes.
func (s *Store) changedDevices(
	ctx context.Context, teamID uuid.UUID, change *roomsensor.AssignmentChange,
) (devices []uuid.UUID, err error) {
	var assignments []uuid.UUID
	for _, end := range change.End {
		assignments = append(assignments, end.ID)
	}
	if change.Edit != nil {
		assignments = append(assignments, change.Edit.ID)
	}
	if len(assignments) > 0 {
		rows, err := s.Queries.AssignmentDeviceList(ctx, s.Pool, db.AssignmentDeviceListParams{
			TeamID: teamID, AssignmentIds: assignments,
		})
		if err != nil {
			return nil, pg.Translate(err)
		}
		for _, id := range assignments {
			i := slices.IndexFunc(rows, func(row db.AssignmentDeviceListRow) bool { return row.ID == id })
			if i < 0 {
				return nil, &roomsensor.NotFoundError{Kind: roomsensor.KindAssignment, ID: id.String()}
			}
			devices = append(devices, rows[i].DeviceID)
		}
	}
	for i := range change.Start {
		devices = append(devices, change.Start[i].DeviceID)
	}
	for i := range change.Devices {
		devices = append(devices, change.Devices[i].Seen.ID)
	}
	slices.SortFunc(devices, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(devices), nil
}

// assignmentChange is a transaction that changes assignments of devices, which it has locked.
type assignmentChange struct {
	*Store

	tx      pgx.Tx
	teamID  uuid.UUID
	outcome roomsensor.AssignmentOutcome
}

func (c *assignmentChange) changeAll(ctx context.Context, change *roomsensor.AssignmentChange) error {
	if change.Reason != "" {
		if err := c.Set(ctx, c.tx, pg.ReasonSetting, change.Reason); err != nil {
			return err
		}
	}
	for i := range change.Devices {
		if err := c.editDevice(ctx, &change.Devices[i]); err != nil {
			return err
		}
	}
	for _, end := range change.End {
		if err := c.endAssignment(ctx, end); err != nil {
			return err
		}
	}
	if change.Edit != nil {
		if err := c.editAssignment(ctx, change.Edit); err != nil {
			return err
		}
	}
	for i := range change.Start {
		if err := c.startAssignment(ctx, &change.Start[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *assignmentChange) editDevice(ctx context.Context, edit *roomsensor.DeviceEdit) error {
	now, err := c.device(ctx, c.tx, c.teamID, edit.Seen.ID)
	switch {
	case err != nil:
		return err
	case !now.SameDescription(&edit.Seen):
		return pg.Overloaded(roomsensor.ErrDeviceChanged)
	}
	_, err = deviceUpdater{c.Store, c.tx}.applyPatch(ctx, c.teamID, now.ID, edit.Patch)
	return err
}

// lockAssignment returns an assignment as it is now, which the change may replace.
func (c *assignmentChange) lockAssignment(ctx context.Context, id uuid.UUID) (roomsensor.Assignment, error) {
	row, err := c.Queries.AssignmentLock(ctx, c.tx, db.AssignmentLockParams{TeamID: c.teamID, AssignmentID: id})
	if err != nil {
		return roomsensor.Assignment{}, pg.TranslateByID(err, "reading an assignment", roomsensor.KindAssignment, id.String())
	}
	before := AssignmentOf(&row)
	c.outcome.Before = append(c.outcome.Before, before)
	return before, nil
}

func (c *assignmentChange) endAssignment(ctx context.Context, end roomsensor.AssignmentEnd) error {
	before, err := c.lockAssignment(ctx, end.ID)
	if err != nil {
		return err
	}
	if before.EndedAt != nil {
		return conflictWith(roomsensor.AssignmentEnded, before)
	}
	next := before
	next.EndedAt = &end.At
	return c.updateAssignment(ctx, before, next)
}

func (c *assignmentChange) editAssignment(ctx context.Context, edit *roomsensor.AssignmentEdit) error {
	before, err := c.lockAssignment(ctx, edit.ID)
	switch {
	case err != nil:
		return err
	case edit.Seen != "" && edit.Seen != before.Version():
		return conflictWith(roomsensor.AssignmentChanged, before)
	case edit.Next == nil:
		return c.Queries.AssignmentDelete(ctx, c.tx, db.AssignmentDeleteParams{TeamID: c.teamID, AssignmentID: edit.ID})
	}
	return c.updateAssignment(ctx, before, *edit.Next)
}

// updateAssignment replaces an assignment by another one on the same device.
func (c *assignmentChange) updateAssignment(ctx context.Context, before, next roomsensor.Assignment) error {
	next.ID, next.DeviceID = before.ID, before.DeviceID
	if next.EndedAt != nil && !next.EndedAt.After(next.StartedAt) {
		return conflictWith(roomsensor.AssignmentStartedLater, next)
	}
	if err := c.requireFree(ctx, &next); err != nil {
		return err
	}
	row, err := c.Queries.AssignmentUpdate(ctx, c.tx, db.AssignmentUpdateParams{
		TeamID: c.teamID, AssignmentID: next.ID, Type: string(next.Type), Label: next.Label,
		HomeOrTravel: string(next.HomeOrTravel), ExternalRef: next.ExternalRef,
		StartedAt: next.StartedAt, EndedAt: next.EndedAt,
	})
	c.outcome.After = append(c.outcome.After, AssignmentOf(&row))
	if err != nil || next.EndedAt != nil {
		return err
	}
	return c.setRetired(ctx, c.tx, c.teamID, next.DeviceID, nil)
}

func (c *assignmentChange) startAssignment(ctx context.Context, a *roomsensor.Assignment) error {
	if err := c.requireFree(ctx, a); err != nil {
		return err
	}
	row, err := c.Queries.AssignmentInsert(ctx, c.tx, db.AssignmentInsertParams{
		TeamID: c.teamID, DeviceID: a.DeviceID, Type: string(a.Type), Label: a.Label,
		HomeOrTravel: string(a.HomeOrTravel), ExternalRef: a.ExternalRef, StartedAt: a.StartedAt,
	})
	if err != nil {
		return err
	}
	c.outcome.After = append(c.outcome.After, AssignmentOf(&row))
	return c.setRetired(ctx, c.tx, c.teamID, a.DeviceID, nil)
}

// requireFree returns a conflict if another assignment of the device overlaps one. The exclusion constraint guarantees
// the same, and cannot name the other one.
func (c *assignmentChange) requireFree(ctx context.Context, a *roomsensor.Assignment) error {
	other, err := c.Queries.AssignmentGetOverlap(ctx, c.tx, db.AssignmentGetOverlapParams{
		TeamID: c.teamID, DeviceID: a.DeviceID, ExceptID: a.ID, StartedAt: a.StartedAt, EndedAt: a.EndedAt,
	})
	switch {
	case err == nil:
		return conflictWith(roomsensor.AssignmentOverlaps, AssignmentOf(&other))
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	}
	return err
}

func conflictWith(conflict roomsensor.AssignmentConflict, a roomsensor.Assignment) error {
	return &roomsensor.AssignmentConflictError{Conflict: conflict, Assignment: a}
}
