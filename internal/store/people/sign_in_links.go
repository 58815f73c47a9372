package people

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/store/pg"
)

// Invite stores a link with which the person with an email address joins a team. It replaces an earlier invitation to
// the team, and adds the person if there is none. Its error is a MemberConflictError for a member, for a disabled
// account, and for a team with too many members.
func (s *Store) Invite(
	ctx context.Context, teamID uuid.UUID, email string, role roomsensor.Role, link accounts.NewLink,
) (invited accounts.User, err error) {
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
			MadeBy: pg.PersonOf(ctx), Purpose: string(accounts.LinkInvitation), ExpiresAt: link.ExpiresAt,
		})
	})
	return invited, err
}

// checkInvitation refuses an invitation that would have no use, and deletes an earlier one.
func (s *Store) checkInvitation(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, invited *accounts.User) error {
	if invited.DisabledAt != nil {
		return &accounts.MemberConflictError{Conflict: accounts.ConflictDisabled}
	}
	_, err := s.Queries.MembershipGet(ctx, tx, db.MembershipGetParams{TeamID: teamID, UserID: invited.ID})
	switch {
	case err == nil:
		return &accounts.MemberConflictError{Conflict: accounts.ConflictMember}
	case !errors.Is(err, pgx.ErrNoRows):
		return err
	}
	p := db.SignInLinkDeleteParams{UserID: invited.ID, TeamID: &teamID}
	if _, err := s.Queries.SignInLinkDelete(ctx, tx, p); err != nil {
		return err
	}
	members, err := s.Queries.MembershipCount(ctx, tx, teamID)
	if errors.Is(err, pgx.ErrNoRows) {
		return &roomsensor.NotFoundError{Kind: roomsensor.KindTeam, ID: teamID.String()}
	}
	if err == nil && members >= accounts.MaxMembers {
		return &accounts.MemberConflictError{Conflict: accounts.ConflictFull}
	}
	return err
}

// Links lists the links of a team that can be used, by email address.
func (s *Store) Links(ctx context.Context, teamID uuid.UUID) ([]accounts.TeamLink, error) {
	rows, err := s.Queries.SignInLinkListByTeam(ctx, s.Pool, &teamID)
	if err != nil {
		return nil, fmt.Errorf("listing links: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.SignInLinkListByTeamRow) accounts.TeamLink {
		return accounts.TeamLink{
			User: accounts.User{ID: row.ID, Email: row.Email}, Purpose: accounts.LinkPurpose(row.Purpose),
			Role: roleOf(pg.Text(row.Role)), MadeBy: pg.Text(row.MadeBy), ExpiresAt: row.ExpiresAt,
		}
	}), nil
}

// RevokeLinks deletes the unused links of a person and a team.
func (s *Store) RevokeLinks(ctx context.Context, teamID, userID uuid.UUID) error {
	p := db.SignInLinkDeleteParams{UserID: userID, TeamID: &teamID}
	return s.InChange(ctx, "revoking a link", func(tx pgx.Tx) error {
		return pg.ChangedRow(s.Queries.SignInLinkDelete(ctx, tx, p))
	})
}

// ResetPassword stores a link of an operator with which a person sets another password. It replaces earlier ones, those
// of admins too. The password stays valid until then. Its error is a MemberConflictError for a disabled account.
func (s *Store) ResetPassword(ctx context.Context, userID uuid.UUID, link accounts.NewLink) error {
	return s.InChange(ctx, "resetting a password", func(tx pgx.Tx) error {
		row, err := s.Queries.UserGet(ctx, tx, userID)
		if err != nil {
			return err
		}
		if row.DisabledAt != nil {
			return &accounts.MemberConflictError{Conflict: accounts.ConflictDisabled}
		}
		return s.insertReset(ctx, tx, userID, nil, link)
	})
}

// ResetMember is ResetPassword for an admin of a team. It replaces earlier links of admins of the team only. Its error
// is a MemberConflictError for a person of other teams too: an admin who sets the password could sign in to these.
func (s *Store) ResetMember(ctx context.Context, teamID, userID uuid.UUID, link accounts.NewLink) error {
	return s.InChange(ctx, "resetting a password", func(tx pgx.Tx) error {
		if err := s.insertReset(ctx, tx, userID, &teamID, link); err != nil {
			return err
		}
		_, err := s.Queries.SignInLinkGet(ctx, tx, link.TokenSHA256[:])
		if errors.Is(err, pgx.ErrNoRows) {
			return s.whyNoReset(ctx, tx, teamID, userID)
		}
		return err
	})
}

// insertReset stores a link for another password instead of the earlier ones of the team; without a team, of all.
func (s *Store) insertReset(
	ctx context.Context, tx pgx.Tx, userID uuid.UUID, teamID *uuid.UUID, link accounts.NewLink,
) error {
	purpose := string(accounts.LinkReset)
	p := db.SignInLinkDeleteParams{UserID: userID, TeamID: teamID, Purpose: &purpose}
	if _, err := s.Queries.SignInLinkDelete(ctx, tx, p); err != nil {
		return err
	}
	insert := db.SignInLinkInsertParams{
		TokenSha256: link.TokenSHA256[:], UserID: userID, TeamID: teamID, Purpose: purpose, ExpiresAt: link.ExpiresAt,
	}
	if teamID != nil {
		insert.MadeBy = pg.PersonOf(ctx)
	}
	return s.Queries.SignInLinkInsert(ctx, tx, insert)
}

// whyNoReset returns the error of a link for another password that could not be used.
func (s *Store) whyNoReset(ctx context.Context, tx pgx.Tx, teamID, userID uuid.UUID) error {
	_, err := s.Queries.MembershipRole(ctx, tx, db.MembershipRoleParams{TeamID: teamID, UserID: userID})
	if err != nil {
		return err
	}
	return &accounts.MemberConflictError{Conflict: accounts.ConflictOtherTeams}
}

// SignInLink returns the link with a token, or ErrNotFound if it does not exist, was used or has expired.
func (s *Store) SignInLink(ctx context.Context, token string) (accounts.SignInLink, error) {
	row, err := s.Queries.SignInLinkGet(ctx, s.Pool, hashed(token))
	if err != nil {
		return accounts.SignInLink{}, fmt.Errorf("reading a link: %w", pg.Translate(err))
	}
	link := accounts.SignInLink{
		Purpose: accounts.LinkPurpose(row.Purpose), Role: roleOf(pg.Text(row.Role)), ExpiresAt: row.ExpiresAt,
		User: accounts.User{ID: row.UserID, Email: row.Email, Name: row.DisplayName, HasPassword: row.HasPassword},
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
		link, err := s.useLink(ctx, tx, token, accounts.LinkInvitation)
		if err != nil {
			return err
		}
		if link.UserID != userID {
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
func (s *Store) UseReset(ctx context.Context, token, hash string) (changed accounts.User, err error) {
	err = s.InChange(ctx, "resetting a password", func(tx pgx.Tx) error {
		link, err := s.useLink(ctx, tx, token, accounts.LinkReset)
		if err != nil {
			return err
		}
		row, err := s.Queries.UserSetPassword(ctx, tx, db.UserSetPasswordParams{UserID: link.UserID, PasswordHash: &hash})
		changed = user((*db.UserGetRow)(&row))
		return err
	})
	return changed, err
}

// useLink marks a link with a purpose as used. Its error is pgx.ErrNoRows if the link cannot be used.
func (s *Store) useLink(
	ctx context.Context, tx pgx.Tx, token string, purpose accounts.LinkPurpose,
) (db.SignInLinkUseRow, error) {
	link, err := s.Queries.SignInLinkUse(ctx, tx, hashed(token))
	if err == nil && link.Purpose != string(purpose) {
		err = pgx.ErrNoRows
	}
	return link, err
}

func hashed(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}
