package fleet

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// SetTeamRetention changes for how many days the readings of a team are kept; nil: without end.
func (s *Store) SetTeamRetention(ctx context.Context, teamID uuid.UUID, days *int32) error {
	return s.InChange(ctx, "changing the retention of a team", func(tx pgx.Tx) error {
		err := pg.ChangedRow(s.Queries.TeamSetRetention(ctx, tx, db.TeamSetRetentionParams{TeamID: teamID, KeepDays: days}))
		if err != nil {
			return pg.TranslateByID(err, "updating a team", roomsensor.KindTeam, teamID.String())
		}
		return nil
	})
}

// SetRetention changes for how many days the readings of a device of a team are kept; nil: as the team's.
func (s *Store) SetRetention(ctx context.Context, teamID, deviceID uuid.UUID, days *int32) error {
	return s.InChange(ctx, "changing the retention of a device", func(tx pgx.Tx) error {
		return s.Queries.DeviceSetRetention(ctx, tx,
			db.DeviceSetRetentionParams{TeamID: teamID, DeviceID: deviceID, KeepDays: days})
	})
}

// Retentions returns for how many days the readings of those devices of a team are kept that have a retention of their
// own.
func (s *Store) Retentions(ctx context.Context, teamID uuid.UUID) (map[uuid.UUID]int32, error) {
	rows, err := s.Queries.DeviceRetentionList(ctx, s.Pool, teamID)
	if err != nil {
		return nil, fmt.Errorf("listing the retentions of devices: %w", pg.Translate(err))
	}
	days := make(map[uuid.UUID]int32, len(rows))
	for _, row := range rows {
		days[row.ID] = row.KeepDays
	}
	return days, nil
}
