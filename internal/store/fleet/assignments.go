package fleet

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/completeness"
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

// TeamAssignments reads a page of the assignments of a team, the newest first.
func (s *Store) TeamAssignments(
	ctx context.Context, teamID uuid.UUID, q roomsensor.TeamAssignmentQuery,
) ([]roomsensor.DeviceAssignment, error) {
	tags, ok := MetadataFilter(q.Metadata)
	if !ok {
		return nil, nil
	}
	params := db.AssignmentListByTeamParams{
		TeamID: teamID, Metadata: tags, WindowFrom: q.Window.From, WindowTo: q.Window.To,
		Type: (*string)(q.Type), Label: q.Label, ExternalRef: q.ExternalRef, Most: int64(q.Limit),
	}
	if q.After != nil {
		params.AfterStartedAt, params.AfterID = &q.After.StartedAt, &q.After.ID
	}
	rows, err := s.Queries.AssignmentListByTeam(ctx, s.Pool, params)
	if err != nil {
		return nil, fmt.Errorf("listing assignments: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.AssignmentListByTeamRow) roomsensor.DeviceAssignment {
		return roomsensor.DeviceAssignment{
			Assignment: AssignmentOf(&row.Assignment), HardwareID: row.HardwareID, DisplayName: row.DisplayName,
		}
	}), nil
}

// Assignment returns an assignment of any device of a team.
func (s *Store) Assignment(ctx context.Context, teamID, assignmentID uuid.UUID) (roomsensor.Assignment, error) {
	row, err := s.Queries.AssignmentGet(ctx, s.Pool, db.AssignmentGetParams{TeamID: teamID, AssignmentID: assignmentID})
	if err != nil {
		return roomsensor.Assignment{}, fmt.Errorf("reading an assignment: %w", pg.Translate(err))
	}
	return AssignmentOf(&row), nil
}

// HeldAssignments returns the assignments that held some devices of a team during a window, by device and start. It
// returns one more than roomsensor.MaxExportAssignments at most.
func (s *Store) HeldAssignments(
	ctx context.Context, teamID uuid.UUID, devices []uuid.UUID, w roomsensor.Window,
) ([]roomsensor.Assignment, error) {
	rows, err := s.Queries.AssignmentListHeld(ctx, s.Pool, db.AssignmentListHeldParams{
		TeamID: teamID, DeviceIds: devices, WindowFrom: w.From, WindowTo: w.To, Most: roomsensor.MaxExportAssignments + 1,
	})
	if err != nil {
		return nil, fmt.Errorf("listing assignments: %w", pg.Translate(err))
	}
	return pg.Convert(rows, AssignmentOf), nil
}

// ExpectedParts returns, for each of some devices of a team, the parts of a window in which its readings are expected
// at now (A3.3). With an external_ref, these are within the assignments that have it (A18.2). Devices that the
// team does not have are left out.
func (s *Store) ExpectedParts(
	ctx context.Context, conn db.DBTX, teamID uuid.UUID, devices []uuid.UUID, externalRef *string, w roomsensor.Window,
	now time.Time,
) (map[uuid.UUID][]roomsensor.Window, error) {
	units, err := s.DeviceUnits(ctx, conn, teamID, devices)
	if err != nil {
		return nil, err
	}
	parts := make(map[uuid.UUID][]roomsensor.Window, len(units))
	if externalRef == nil {
		for id, installations := range units {
			parts[id] = []roomsensor.Window{completeness.Expected(w, installations, now)}
		}
		return parts, nil
	}
	rows, err := s.Queries.AssignmentListHeld(ctx, conn, db.AssignmentListHeldParams{
		TeamID: teamID, DeviceIds: devices, WindowFrom: w.From, WindowTo: w.To, ExternalRef: externalRef, Most: math.MaxInt64,
	})
	held := map[uuid.UUID][]roomsensor.Window{}
	for i := range rows {
		a := AssignmentOf(&rows[i])
		held[a.DeviceID] = append(held[a.DeviceID], w.Intersect(a.Window()))
	}
	for id, installations := range units {
		parts[id] = completeness.ExpectedDuring(held[id], installations, now)
	}
	return parts, err
}

// DeviceAssignments lists all assignments of a device of any team, the newest first.
func (s *Store) DeviceAssignments(ctx context.Context, deviceID uuid.UUID) ([]roomsensor.Assignment, error) {
	d, err := s.ownedDevice(ctx, s.Pool, deviceID)
	if err != nil {
		return nil, err
	}
	return s.Assignments(ctx, d.TeamID, deviceID, roomsensor.AssignmentQuery{Limit: math.MaxInt})
}

// AssignmentTeam returns the team of an assignment of any team.
func (s *Store) AssignmentTeam(ctx context.Context, id uuid.UUID) (uuid.UUID, error) {
	team, err := s.Queries.AssignmentGetTeam(ctx, s.Pool, id)
	if err != nil {
		return uuid.Nil, pg.TranslateByID(err, "reading the team of an assignment", roomsensor.KindAssignment, id.String())
	}
	return team, nil
}

// OpenAthletes lists the open assignments of the athletes of a team with their devices, by label, and at most limit of
// them.
func (s *Store) OpenAthletes(
	ctx context.Context, teamID uuid.UUID, limit int,
) ([]roomsensor.DeviceAssignment, error) {
	rows, err := s.Queries.AthleteOpenList(ctx, s.Pool, db.AthleteOpenListParams{TeamID: teamID, Most: int64(limit)})
	if err != nil {
		return nil, fmt.Errorf("listing open assignments: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.AthleteOpenListRow) roomsensor.DeviceAssignment {
		return roomsensor.DeviceAssignment{
			Assignment: AssignmentOf(&row.Assignment), HardwareID: row.HardwareID, DisplayName: row.DisplayName,
		}
	}), nil
}

// knownOfDevice is how many of the newest assignments of a device KnownAthletes reads.
const knownOfDevice = 50

// KnownAthletes lists how the newest assignments of each device of a team name athletes, those that started last first,
// and at most limit of them.
func (s *Store) KnownAthletes(ctx context.Context, teamID uuid.UUID, limit int) ([]roomsensor.AthleteName, error) {
	rows, err := s.Queries.AthleteList(ctx, s.Pool, db.AthleteListParams{
		TeamID: teamID, OfDevice: knownOfDevice, Most: int64(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing athletes: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.AthleteListRow) roomsensor.AthleteName {
		return roomsensor.AthleteName(*row)
	}), nil
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
