package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// CreateSource stores a source and, if key is not nil, a key of it. Its errors are a SourceExistsError, a
// TooManySourcesError and ErrKeyExists.
func (s *Store) CreateSource(
	ctx context.Context, source roomsensor.Source, key *roomsensor.Key,
) (created roomsensor.Source, err error) {
	err = s.InChange(ctx, "creating a source", func(tx pgx.Tx) error {
		// The lock keeps two transactions from both creating the last source.
		if _, err := s.Queries.TeamSettingsLock(ctx, tx, source.TeamID); err != nil {
			return pg.TranslateByID(err, "locking a team", roomsensor.KindTeam, source.TeamID.String())
		}
		count, err := s.Queries.SourceCount(ctx, tx, source.TeamID)
		switch {
		case err != nil:
			return err
		case count >= roomsensor.MaxSources:
			return &roomsensor.TooManySourcesError{}
		}
		row, err := s.Queries.SourceInsert(ctx, tx, db.SourceInsertParams{
			TeamID: source.TeamID, Name: source.Name, Format: source.Format, Mapping: source.Mapping,
		})
		if err != nil {
			return translateSource(err, source.Name, pg.TranslateInsert(err, "inserting a source", source.TeamID))
		}
		created = sourceOf(&row)
		if key == nil {
			return nil
		}
		key.Source = &roomsensor.KeySource{ID: created.ID}
		_, err = s.insertIngestKey(ctx, tx, *key)
		return err
	})
	return created, err
}

// translateSource returns a SourceExistsError, or another error.
func translateSource(err error, name string, other error) error {
	if pg.Violates(err, pg.StateUnique, pg.ConstraintSourceName) {
		return &roomsensor.SourceExistsError{Name: name}
	}
	return other
}

// ChangeSource changes a source of a team. Its errors are a SourceExistsError and a NotFoundError.
func (s *Store) ChangeSource(
	ctx context.Context, teamID, sourceID uuid.UUID, change roomsensor.SourceChange,
) (changed roomsensor.Source, err error) {
	err = s.InChange(ctx, "changing a source", func(tx pgx.Tx) error {
		row, err := s.Queries.SourceUpdate(ctx, tx, db.SourceUpdateParams{
			TeamID: teamID, SourceID: sourceID,
			Name: change.Name, Format: change.Format, Mapping: change.Mapping, Disabled: change.Disabled,
		})
		if err != nil {
			return translateSource(err, pg.Text(change.Name),
				pg.TranslateByID(err, "changing a source", roomsensor.KindSource, sourceID.String()))
		}
		changed = sourceOf(&row)
		return nil
	})
	return changed, err
}

// DeleteSource deletes a source of a team. Its readings and rejects stay, its keys are revoked (A10.9).
func (s *Store) DeleteSource(ctx context.Context, teamID, sourceID uuid.UUID) error {
	return s.InChange(ctx, "deleting a source", func(tx pgx.Tx) error {
		n, err := s.Queries.SourceDelete(ctx, tx, db.SourceDeleteParams{TeamID: teamID, SourceID: sourceID})
		if err == nil && n == 0 {
			return &roomsensor.NotFoundError{Kind: roomsensor.KindSource, ID: sourceID.String()}
		}
		return err
	})
}

// TeamSources lists the sources of a team by name.
func (s *Store) TeamSources(ctx context.Context, teamID uuid.UUID) ([]roomsensor.ListedSource, error) {
	rows, err := s.Queries.SourceList(ctx, s.Pool, teamID)
	if err != nil {
		return nil, fmt.Errorf("listing sources: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.SourceListRow) roomsensor.ListedSource {
		return roomsensor.ListedSource{Source: sourceOf(&row.Source), SourceActivity: roomsensor.SourceActivity{
			LastReceivedAt: pg.UTC(row.LastReceivedAt),
			Messages:       row.Messages, Stored: row.Stored, Rejected: row.Rejected, Ignored: row.Ignored,
		}}
	}), nil
}

// NewestSourceMessage returns the newest message of a source of a team; false before the first one.
func (s *Store) NewestSourceMessage(
	ctx context.Context, teamID, sourceID uuid.UUID,
) (m roomsensor.SourceMessage, ok bool, err error) {
	row, err := s.Queries.SourceMessageGet(ctx, s.Pool, db.SourceMessageGetParams{TeamID: teamID, SourceID: sourceID})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return m, false, nil
	case err != nil:
		return m, false, fmt.Errorf("reading the newest message of a source: %w", pg.Translate(err))
	}
	return roomsensor.SourceMessage{
		ReceivedAt: row.LastReceivedAt.UTC(), Text: row.Message, Precision: row.Precision,
	}, true, nil
}

// Sources returns those of some sources that exist, of all teams.
func (s *Store) Sources(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]roomsensor.Source, error) {
	rows, err := s.Queries.SourceListByID(ctx, s.Pool, ids)
	if err != nil {
		return nil, fmt.Errorf("reading sources: %w", pg.Translate(err))
	}
	found := make(map[uuid.UUID]roomsensor.Source, len(rows))
	for i := range rows {
		found[rows[i].ID] = sourceOf(&rows[i])
	}
	return found, nil
}

// RecordSources adds counts of some distinct sources and stores their newest messages. It passes over sources that were
// deleted.
func (s *Store) RecordSources(ctx context.Context, counts []roomsensor.SourceCount) error {
	var state db.SourceStateUpsertParams
	var hour db.SourceHourAddParams
	for i := range counts {
		c := &counts[i]
		state.SourceIds = append(state.SourceIds, c.SourceID)
		state.ReceivedAt = append(state.ReceivedAt, c.Newest.ReceivedAt)
		state.Messages = append(state.Messages, c.Newest.Text)
		state.Precisions = append(state.Precisions, c.Newest.Precision)
		hour.Messages, hour.Stored = append(hour.Messages, c.Messages), append(hour.Stored, c.Stored)
		hour.Rejected, hour.Ignored = append(hour.Rejected, c.Rejected), append(hour.Ignored, c.Ignored)
	}
	hour.SourceIds = state.SourceIds
	return s.InTx(ctx, "recording what sources received", func(tx pgx.Tx) error {
		if err := s.Queries.SourceStateUpsert(ctx, tx, state); err != nil {
			return err
		}
		if err := s.Queries.SourceHourAdd(ctx, tx, hour); err != nil {
			return err
		}
		return s.Queries.SourceHourPurge(ctx, tx, state.SourceIds)
	})
}

func sourceOf(row *db.Source) roomsensor.Source {
	return roomsensor.Source{
		ID: row.ID, TeamID: row.TeamID, Name: row.Name, Format: row.Format, Mapping: pg.Text(row.Mapping),
		CreatedAt: row.CreatedAt.UTC(), DisabledAt: pg.UTC(row.DisabledAt),
	}
}

// DisplayNames returns the display names of some devices of a team. One without a name has an empty one.
func (s *Store) DisplayNames(
	ctx context.Context, teamID uuid.UUID, deviceIDs []uuid.UUID,
) (map[uuid.UUID]string, error) {
	rows, err := s.Queries.SourceDeviceList(ctx, s.Pool, db.SourceDeviceListParams{TeamID: teamID, DeviceIds: deviceIDs})
	if err != nil {
		return nil, fmt.Errorf("reading the names of devices: %w", pg.Translate(err))
	}
	names := make(map[uuid.UUID]string, len(rows))
	for i := range rows {
		names[rows[i].ID] = rows[i].Name
	}
	return names, nil
}
