package people

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// Invite stores a link with which the person with an email address joins a team. It replaces an earlier invitation to
// the team, and adds the person if there is none. Its error is a MemberConflictError for a member, for a disabled
// account, and for a team with too many members.
func (s *Store) Invite(
	ctx context.Context, teamID uuid.UUID, email string, role roomsensor.Role, link roomsensor.NewLink,
) (invited roomsensor.User, err error) {
	err = s.InChange(ctx, "inviting a user", func(tx pgx.Tx) error {
		if err := s.Queries.UserInsert(ctx, tx, email); err != nil {
			return err
		}
		row, err := s.Queries.UserGetByEmail(ctx, tx, email)
		if err != nil {
			return err
		}
		invited = user((*db.UserGetRow)(&row))
		if err := s.checkInvitation(ctx, tx, teamID, &invited); err != nil {
			return err
		}
		name := role.String()
		return s.Queries.SignInLinkInsert(ctx, tx, db.SignInLinkInsertParams{
			TokenSha256: link.TokenSHA256[:], UserID: invited.ID, TeamID: &teamID, Role: &name,
			Purpose: string(roomsensor.LinkInvitation), ExpiresAt: link.ExpiresAt,
		})
	})
	return invited, err
}

// checkInvitation refuses an invitation that would have no use, and deletes an earlier one.
func (s *Store) checkInvitation(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, invited *roomsensor.User) error {
	if invited.DisabledAt != nil {
		return &roomsensor.MemberConflictError{Conflict: roomsensor.ConflictDisabled}
	}
	_, err := s.Queries.MembershipGet(ctx, tx, db.MembershipGetParams{TeamID: teamID, UserID: invited.ID})
	switch {
	case err == nil:
		return &roomsensor.MemberConflictError{Conflict: roomsensor.ConflictMember}
	case !errors.Is(err, pgx.ErrNoRows):
		return err
	}
	p := db.SignInLinkDeleteByTeamParams{TeamID: &teamID, UserID: invited.ID}
	if _, err := s.Queries.SignInLinkDeleteByTeam(ctx, tx, p); err != nil {
		return err
	}
	members, err := s.Queries.MembershipCount(ctx, tx, teamID)
	if errors.Is(err, pgx.ErrNoRows) {
		return &roomsensor.NotFoundError{Kind: roomsensor.KindTeam, ID: teamID.String()}
	}
	if err == nil && members >= roomsensor.MaxMembers {
		return &roomsensor.MemberConflictError{Conflict: roomsensor.ConflictFull}
	}
	return err
}

// Invitations lists the open invitations of a team by email address.
func (s *Store) Invitations(ctx context.Context, teamID uuid.UUID) ([]roomsensor.Invitation, error) {
	rows, err := s.Queries.SignInLinkListByTeam(ctx, s.Pool, &teamID)
	if err != nil {
		return nil, fmt.Errorf("listing invitations: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.SignInLinkListByTeamRow) roomsensor.Invitation {
		return roomsensor.Invitation{
			User: roomsensor.User{ID: row.ID, Email: row.Email}, Role: roleOf(pg.Text(row.Role)),
			CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt,
		}
	}), nil
}

// RevokeInvitation deletes the open invitation of a person to a team.
func (s *Store) RevokeInvitation(ctx context.Context, teamID, userID uuid.UUID) error {
	p := db.SignInLinkDeleteByTeamParams{TeamID: &teamID, UserID: userID}
	return s.InChange(ctx, "revoking an invitation", func(tx pgx.Tx) error {
		return pg.ChangedRow(s.Queries.SignInLinkDeleteByTeam(ctx, tx, p))
	})
}

// ResetPassword stores a link with which a person sets another password. It replaces earlier ones. The password stays
// valid until then. Its error is a MemberConflictError for a disabled account.
func (s *Store) ResetPassword(ctx context.Context, userID uuid.UUID, link roomsensor.NewLink) error {
	return s.InChange(ctx, "resetting a password", func(tx pgx.Tx) error {
		row, err := s.Queries.UserGet(ctx, tx, userID)
		if err != nil {
			return err
		}
		if row.DisabledAt != nil {
			return &roomsensor.MemberConflictError{Conflict: roomsensor.ConflictDisabled}
		}
		purpose := string(roomsensor.LinkReset)
		p := db.SignInLinkDeleteByUserParams{UserID: userID, Purpose: &purpose}
		if err := s.Queries.SignInLinkDeleteByUser(ctx, tx, p); err != nil {
			return err
		}
		return s.Queries.SignInLinkInsert(ctx, tx, db.SignInLinkInsertParams{
			TokenSha256: link.TokenSHA256[:], UserID: userID, Purpose: purpose, ExpiresAt: link.ExpiresAt,
		})
	})
}

// ResetMember is ResetPassword for an admin of a team. Its error is a MemberConflictError for a person of other teams
// too: an admin who sets the password could sign in to these.
func (s *Store) ResetMember(ctx context.Context, teamID, userID uuid.UUID, link roomsensor.NewLink) error {
	teams, err := s.Memberships(ctx, userID)
	switch {
	case err != nil:
		return err
	case !slices.ContainsFunc(teams, func(m roomsensor.Membership) bool { return m.Team.ID == teamID }):
		return roomsensor.ErrNotFound
	case len(teams) > 1:
		return &roomsensor.MemberConflictError{Conflict: roomsensor.ConflictOtherTeams}
	}
	return s.ResetPassword(ctx, userID, link)
}

// SignInLink returns the link with a token, or ErrNotFound if it does not exist, was used or has expired.
func (s *Store) SignInLink(ctx context.Context, token string) (roomsensor.SignInLink, error) {
	row, err := s.Queries.SignInLinkGet(ctx, s.Pool, hashed(token))
	if err != nil {
		return roomsensor.SignInLink{}, fmt.Errorf("reading a link: %w", pg.Translate(err))
	}
	link := roomsensor.SignInLink{
		Purpose: roomsensor.LinkPurpose(row.Purpose), Role: roleOf(pg.Text(row.Role)), ExpiresAt: row.ExpiresAt,
		User: roomsensor.User{ID: row.UserID, Email: row.Email, Name: row.DisplayName, HasPassword: row.HasPassword},
	}
	if row.TeamID != nil {
		link.Team = roomsensor.Team{ID: *row.TeamID, Name: *row.TeamName}
	}
	return link, nil
}

// AcceptInvitation makes the person of a link a member of its team. A person without a password gets a name and the
// hash of one; hash is empty for a person who has a password and is signed in as userID. Its error is ErrNotFound if
// the link can no longer be used in this way.
func (s *Store) AcceptInvitation(ctx context.Context, token string, userID uuid.UUID, name, hash string) error {
	return s.InChange(ctx, "accepting an invitation", func(tx pgx.Tx) error {
		link, err := s.Queries.SignInLinkUse(ctx, tx, hashed(token))
		if err != nil {
			return err
		}
		if link.Purpose != string(roomsensor.LinkInvitation) || link.UserID != userID {
			return pgx.ErrNoRows
		}
		if hash != "" {
			err := pg.ChangedRow(s.Queries.UserSetFirstPassword(ctx, tx, db.UserSetFirstPasswordParams{
				UserID: link.UserID, DisplayName: name, PasswordHash: &hash,
			}))
			if err != nil {
				return err // No row: the person set a password meanwhile, through another link.
			}
		}
		return s.Queries.MembershipInsert(ctx, tx, db.MembershipInsertParams{
			UserID: link.UserID, TeamID: *link.TeamID, Role: *link.Role,
		})
	})
}

// UseReset sets the password of the person of a link and ends all sessions. Its error is ErrNotFound if the link can no
// longer be used.
func (s *Store) UseReset(ctx context.Context, token, hash string) (changed roomsensor.User, err error) {
	err = s.InChange(ctx, "resetting a password", func(tx pgx.Tx) error {
		link, err := s.Queries.SignInLinkUse(ctx, tx, hashed(token))
		if err != nil {
			return err
		}
		if link.Purpose != string(roomsensor.LinkReset) {
			return pgx.ErrNoRows
		}
		row, err := s.Queries.UserSetPassword(ctx, tx, db.UserSetPasswordParams{UserID: link.UserID, PasswordHash: &hash})
		changed = user((*db.UserGetRow)(&row))
		return err
	})
	return changed, err
}

func hashed(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}
