// Package people reads and changes the people who use the dashboard: their teams, sessions and sign-ins, the audit log
// of what they change, and what is stored about people whom assignments name.
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

// Store reads and changes people. It is safe for concurrent use.
type Store struct {
	*pg.DB
	fleet *fleet.Store
}

// New returns a store with the pools of a role.
func New(d *pg.DB, f *fleet.Store) *Store { return &Store{d, f} }

// User returns a person, also one who may no longer sign in.
func (s *Store) User(ctx context.Context, userID uuid.UUID) (accounts.User, error) {
	row, err := s.Queries.UserGet(ctx, s.Pool, userID)
	if err != nil {
		return accounts.User{}, fmt.Errorf("reading a user: %w", pg.Translate(err))
	}
	return user(&row), nil
}

// Credentials returns the person with an email address. Letter case does not matter. Its error is ErrNotFound if there
// is none, or one who may not sign in.
func (s *Store) Credentials(ctx context.Context, email string) (accounts.Credentials, error) {
	row, err := s.Queries.UserGetCredentials(ctx, s.Pool, email)
	if err != nil {
		return accounts.Credentials{}, fmt.Errorf("reading credentials: %w", pg.Translate(err))
	}
	return accounts.Credentials{
		User: accounts.User{
			ID: row.ID, Email: row.Email, Name: row.DisplayName, HasPassword: true,
			CreatedAt: row.CreatedAt, SignedOutAt: pg.UTC(row.SignedOutAt),
		},
		PasswordHash: *row.PasswordHash,
	}, nil
}

// UserByEmail returns the person with an email address. Letter case does not matter.
func (s *Store) UserByEmail(ctx context.Context, email string) (accounts.User, error) {
	row, err := s.Queries.UserGetByEmail(ctx, s.Pool, email)
	if err != nil {
		return accounts.User{}, pg.TranslateByID(err, "reading a user", roomsensor.KindUser, email)
	}
	return user((*db.UserGetRow)(&row)), nil
}

// Users lists all people with their teams, the oldest account first.
func (s *Store) Users(ctx context.Context) (all []accounts.UserTeams, err error) {
	rows, err := s.Queries.UserList(ctx, s.Pool)
	if err != nil {
		return nil, fmt.Errorf("listing users: %w", pg.Translate(err))
	}
	for i := range rows {
		row := &rows[i]
		if len(all) == 0 || all[len(all)-1].User.ID != row.ID {
			all = append(all, accounts.UserTeams{User: accounts.User{
				ID: row.ID, Email: row.Email, Name: row.DisplayName, HasPassword: row.HasPassword,
				CreatedAt: row.CreatedAt, DisabledAt: row.DisabledAt,
			}})
		}
		if row.TeamID != nil {
			last := &all[len(all)-1]
			last.Teams = append(last.Teams, accounts.Membership{
				Team: accounts.TeamSettings{ID: *row.TeamID, Name: *row.TeamName}, Role: roleOf(pg.Text(row.Role)),
			})
		}
	}
	return all, nil
}

// ChangePassword stores the hash of a password and ends all sessions of the person. It returns the person, of whom a
// new session may begin.
func (s *Store) ChangePassword(
	ctx context.Context, userID uuid.UUID, hash string,
) (changed accounts.User, err error) {
	err = s.InChange(ctx, "changing a password", func(tx pgx.Tx) error {
		row, err := s.Queries.UserSetPassword(ctx, tx, db.UserSetPasswordParams{UserID: userID, PasswordHash: &hash})
		changed = user((*db.UserGetRow)(&row))
		return err
	})
	return changed, err
}

// RenameUser changes the name of a person.
func (s *Store) RenameUser(ctx context.Context, userID uuid.UUID, name string) error {
	p := db.UserSetNameParams{UserID: userID, DisplayName: name}
	return s.InChange(ctx, "renaming a user", func(tx pgx.Tx) error { return s.Queries.UserSetName(ctx, tx, p) })
}

// ChooseFormat changes how a person reads temperatures, times of day and dates.
func (s *Store) ChooseFormat(ctx context.Context, userID uuid.UUID, c roomsensor.FormatChoice) error {
	err := s.Queries.UserSetFormat(ctx, s.Pool, db.UserSetFormatParams{
		UserID: userID, Fahrenheit: c.Fahrenheit, Hour12: c.Hour12, MonthFirst: c.MonthFirst,
	})
	if err != nil {
		return fmt.Errorf("choosing a format: %w", pg.Translate(err))
	}
	return nil
}

// SignOutEverywhere ends all sessions of a person.
func (s *Store) SignOutEverywhere(ctx context.Context, userID uuid.UUID) error {
	return s.InChange(ctx, "ending the sessions of a user", func(tx pgx.Tx) error {
		return s.Queries.UserSignOut(ctx, tx, userID)
	})
}

// DisableUser keeps a person from signing in: it ends the sessions and deletes the unused links. A second call changes
// nothing.
func (s *Store) DisableUser(ctx context.Context, userID uuid.UUID) error {
	return s.InChange(ctx, "disabling a user", func(tx pgx.Tx) error {
		if _, err := s.Queries.SignInLinkDelete(ctx, tx, db.SignInLinkDeleteParams{UserID: userID}); err != nil {
			return err
		}
		return s.Queries.UserDisable(ctx, tx, userID)
	})
}

// DeleteUser deletes a person with memberships, links and sessions. The audit log keeps the address, unless name is not
// empty: then it replaces the address there. It returns the number of entries that changed.
func (s *Store) DeleteUser(ctx context.Context, userID uuid.UUID, name string) (entries int64, err error) {
	err = s.InChange(ctx, "deleting a user", func(tx pgx.Tx) error {
		deleted, err := s.Queries.UserDelete(ctx, tx, userID)
		switch {
		case err != nil:
			return err
		case deleted == 0:
			return &roomsensor.NotFoundError{Kind: roomsensor.KindUser, ID: userID.String()}
		case name == "":
			return nil
		}
		// The deletion itself writes an entry with the address, so that the audit log is changed after it.
		entries, err = s.Queries.UserAuditErase(ctx, tx, db.UserAuditEraseParams{
			UserID: userID, ObjectID: userID.String(), Name: name,
		})
		return err
	})
	return entries, err
}

// EnableUser lets a disabled person sign in again.
func (s *Store) EnableUser(ctx context.Context, userID uuid.UUID) error {
	return s.InChange(ctx, "enabling a user", func(tx pgx.Tx) error { return s.Queries.UserEnable(ctx, tx, userID) })
}

func user(row *db.UserGetRow) accounts.User {
	return accounts.User{
		ID: row.ID, Email: row.Email, Name: row.DisplayName, HasPassword: row.HasPassword,
		CreatedAt: row.CreatedAt, DisabledAt: row.DisabledAt, SignedOutAt: pg.UTC(row.SignedOutAt),
		Format: roomsensor.FormatChoice{Fahrenheit: row.Fahrenheit, Hour12: row.Hour12, MonthFirst: row.MonthFirst},
	}
}
