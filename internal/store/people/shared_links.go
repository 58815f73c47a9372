package people

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/store/fleet"
	"roomsensor/internal/store/pg"
)

// Share stores a link of the person of ctx. Its error is that of roomsensor.TooManyShares if the team has too many, and
// ErrNotFound for what does not belong to the team.
func (s *Store) Share(ctx context.Context, teamID uuid.UUID, what accounts.Shared, link accounts.NewLink) error {
	return s.InChange(ctx, "sharing", func(tx pgx.Tx) error {
		if _, err := s.Queries.TeamSettingsLock(ctx, tx, teamID); err != nil {
			return err
		}
		count, err := s.Queries.SharedLinkCount(ctx, tx, teamID)
		if err != nil {
			return err
		}
		if count >= accounts.MaxShares {
			return accounts.TooManyShares()
		}
		maker := pg.PersonOf(ctx)
		if maker == nil {
			return roomsensor.ErrNotFound // Only people share.
		}
		p := db.SharedLinkInsertParams{
			TokenSha256: link.TokenSHA256[:], TeamID: teamID, MadeBy: *maker, ExpiresAt: link.ExpiresAt,
			AssignmentID: what.AssignmentID, DeviceIds: what.DeviceIDs,
		}
		if what.Night != nil {
			p.Night = pgtype.Date{Time: *what.Night, Valid: true}
		}
		return pg.ChangedRow(s.Queries.SharedLinkInsert(ctx, tx, p))
	})
}

// SharedLink returns the link with a token, or ErrNotFound if it does not exist, has expired, or its maker may not
// share any more.
func (s *Store) SharedLink(ctx context.Context, token string) (accounts.SharedLink, error) {
	row, err := s.Queries.SharedLinkGet(ctx, s.Pool, hashed(token))
	if err != nil {
		return accounts.SharedLink{}, fmt.Errorf("reading a shared link: %w", pg.Translate(err))
	}
	return accounts.SharedLink{
		Shared: sharedOf(row.Night, row.AssignmentID, row.DeviceIds), Team: fleet.TeamSettingsOf(&row.Team),
		ExpiresAt: row.ExpiresAt,
	}, nil
}

func sharedOf(night pgtype.Date, assignmentID *uuid.UUID, devices []uuid.UUID) accounts.Shared {
	what := accounts.Shared{AssignmentID: assignmentID, DeviceIDs: devices}
	if night.Valid {
		what.Night = new(night.Time)
	}
	return what
}

// SharedLinks lists the links of a team that can be used, the newest first.
func (s *Store) SharedLinks(ctx context.Context, teamID uuid.UUID) ([]accounts.SharedLink, error) {
	rows, err := s.Queries.SharedLinkList(ctx, s.Pool, teamID)
	if err != nil {
		return nil, fmt.Errorf("listing shared links: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.SharedLinkListRow) accounts.SharedLink {
		return accounts.SharedLink{
			Shared: sharedOf(row.Night, row.AssignmentID, row.DeviceIds), ID: row.ID, Person: pg.Text(row.Label),
			MadeBy: row.Maker, ExpiresAt: row.ExpiresAt,
		}
	}), nil
}

// RevokeShare deletes a link of a team.
func (s *Store) RevokeShare(ctx context.Context, teamID, shareID uuid.UUID) error {
	return s.InChange(ctx, "revoking a shared link", func(tx pgx.Tx) error {
		return pg.ChangedRow(s.Queries.SharedLinkDelete(ctx, tx, db.SharedLinkDeleteParams{TeamID: teamID, ShareID: shareID}))
	})
}
