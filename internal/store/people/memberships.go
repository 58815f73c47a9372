package people

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/store/fleet"
	"roomsensor/internal/store/pg"
)

// Membership returns the role of a person in a team, or ErrNotFound if the person is not a member.
func (s *Store) Membership(ctx context.Context, teamID, userID uuid.UUID) (accounts.Membership, error) {
	row, err := s.Queries.MembershipGet(ctx, s.Pool, db.MembershipGetParams{TeamID: teamID, UserID: userID})
	if err != nil {
		return accounts.Membership{}, fmt.Errorf("reading a membership: %w", pg.Translate(err))
	}
	return membership(row.Role, &row.Team), nil
}

// Memberships lists the teams of a person by name.
func (s *Store) Memberships(ctx context.Context, userID uuid.UUID) ([]accounts.Membership, error) {
	rows, err := s.Queries.MembershipListByUser(ctx, s.Pool, userID)
	if err != nil {
		return nil, fmt.Errorf("listing memberships: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.MembershipListByUserRow) accounts.Membership {
		return membership(row.Role, &row.Team)
	}), nil
}

func membership(role string, team *db.Team) accounts.Membership {
	return accounts.Membership{Team: fleet.TeamSettingsOf(team), Role: roleOf(role)}
}

// roleOf converts the name of a role; empty is NoRole. The database accepts no other names.
func roleOf(name string) roomsensor.Role {
	role, _ := roomsensor.ParseRole(name)
	return role
}

// Members lists the members of a team by email address. There are at most roomsensor.MaxMembers.
func (s *Store) Members(ctx context.Context, teamID uuid.UUID) ([]accounts.Member, error) {
	rows, err := s.Queries.MembershipList(ctx, s.Pool, teamID)
	if err != nil {
		return nil, fmt.Errorf("listing members: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.MembershipListRow) accounts.Member {
		return accounts.Member{
			User: accounts.User{ID: row.ID, Email: row.Email, Name: row.DisplayName, DisabledAt: row.DisabledAt},
			Role: roleOf(row.Role), Since: row.CreatedAt, OtherTeams: int(row.Others),
		}
	}), nil
}

// SetRole changes the role of a member. Its error is a MemberConflictError if the team would have no admin.
func (s *Store) SetRole(ctx context.Context, teamID, userID uuid.UUID, role roomsensor.Role) error {
	return s.changeMember(ctx, teamID, userID, role, func(tx pgx.Tx) (int64, error) {
		return s.Queries.MembershipSetRole(ctx, tx, db.MembershipSetRoleParams{
			TeamID: teamID, UserID: userID, Role: role.String(),
		})
	})
}

// RemoveMember ends the membership of a person. Its error is a MemberConflictError if the team would have no admin.
func (s *Store) RemoveMember(ctx context.Context, teamID, userID uuid.UUID) error {
	return s.changeMember(ctx, teamID, userID, roomsensor.NoRole, func(tx pgx.Tx) (int64, error) {
		return s.Queries.MembershipDelete(ctx, tx, db.MembershipDeleteParams{TeamID: teamID, UserID: userID})
	})
}

// changeMember runs a change that gives a member a role. It locks the admins of the team, so that two of them cannot
// remove each other at the same time.
func (s *Store) changeMember(
	ctx context.Context, teamID, userID uuid.UUID, role roomsensor.Role, change func(pgx.Tx) (int64, error),
) error {
	return s.InChange(ctx, "changing a member", func(tx pgx.Tx) error {
		admins, err := s.Queries.MembershipLockAdmins(ctx, tx, teamID)
		if err != nil {
			return err
		}
		if role != roomsensor.Admin && len(admins) == 1 && admins[0] == userID {
			return &accounts.MemberConflictError{Conflict: accounts.ConflictLastAdmin}
		}
		return pg.ChangedRow(change(tx))
	})
}
