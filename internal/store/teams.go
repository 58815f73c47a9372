package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// Team returns a team.
func (s *Store) Team(ctx context.Context, teamID uuid.UUID) (roomsensor.Team, error) {
	row, err := s.queries.TeamGet(ctx, s.pool, teamID)
	if err != nil {
		return roomsensor.Team{}, translateByID(err, "reading a team", roomsensor.KindTeam, teamID.String())
	}
	return roomsensor.Team{ID: row.ID, Name: row.Name}, nil
}

// Teams lists all teams, the oldest first.
func (s *Store) Teams(ctx context.Context) ([]roomsensor.Team, error) {
	rows, err := s.queries.TeamList(ctx, s.pool)
	if err != nil {
		return nil, fmt.Errorf("listing teams: %w", translate(err))
	}
	return convert(rows, func(row *db.TeamListRow) roomsensor.Team {
		return roomsensor.Team{ID: row.ID, Name: row.Name}
	}), nil
}

// maxNamesakes is how many teams or devices with the same name are listed.
const maxNamesakes = 10

// TeamsNamed lists teams with a name, the oldest first, and at most maxNamesakes of them.
func (s *Store) TeamsNamed(ctx context.Context, name string) ([]roomsensor.Team, error) {
	rows, err := s.queries.TeamListByName(ctx, s.pool, db.TeamListByNameParams{Name: name, Most: maxNamesakes})
	if err != nil {
		return nil, fmt.Errorf("finding a team: %w", translate(err))
	}
	return convert(rows, func(row *db.TeamListByNameRow) roomsensor.Team {
		return roomsensor.Team{ID: row.ID, Name: row.Name}
	}), nil
}

// RenameTeam changes the name of a team.
func (s *Store) RenameTeam(ctx context.Context, teamID uuid.UUID, name string) (roomsensor.Team, error) {
	row, err := s.queries.TeamRename(ctx, s.pool, db.TeamRenameParams{TeamID: teamID, Name: name})
	if err != nil {
		return roomsensor.Team{}, translateByID(err, "renaming a team", roomsensor.KindTeam, teamID.String())
	}
	return roomsensor.Team{ID: row.ID, Name: row.Name}, nil
}

// CreateTeam creates a team.
func (s *Store) CreateTeam(ctx context.Context, name string) (roomsensor.Team, error) {
	row, err := s.queries.TeamInsert(ctx, s.pool, name)
	if err != nil {
		return roomsensor.Team{}, fmt.Errorf("creating a team: %w", translate(err))
	}
	return roomsensor.Team{ID: row.ID, Name: row.Name}, nil
}
