package fleet

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/store/pg"
)

// Notes lists the notes of a team in a window, the newest first. There are at most roomsensor.MaxNotes.
func (s *Store) Notes(ctx context.Context, teamID uuid.UUID, w roomsensor.Window) ([]roomsensor.Note, error) {
	rows, err := s.Queries.NoteList(ctx, s.Pool, db.NoteListParams{TeamID: teamID, WindowFrom: w.From, WindowTo: w.To})
	if err != nil {
		return nil, fmt.Errorf("listing notes: %w", pg.Translate(err))
	}
	return pg.Convert(rows, noteOf), nil
}

func noteOf(row *db.NoteListRow) roomsensor.Note {
	n := roomsensor.Note{
		ID: row.ID, DeviceID: row.DeviceID, AssignmentID: row.AssignmentID, At: row.At.UTC(), Text: row.Text,
	}
	if row.AssignmentID != nil {
		n.Assignment = &roomsensor.Assignment{
			Type: roomsensor.AssignmentType(*row.Type), Label: *row.Label, ExternalRef: row.ExternalRef,
		}
	}
	if row.Email != nil {
		author := accounts.User{Email: *row.Email, Name: *row.DisplayName}
		n.Author = author.DisplayName()
	}
	return n
}

// AddNote stores a note of the actor of ctx about a device of a team, or about the person of an assignment if the note
// has one. The same note again changes nothing. Its error is that of roomsensor.TooManyNotes if the team has too many.
func (s *Store) AddNote(ctx context.Context, teamID uuid.UUID, n *roomsensor.Note) error {
	return s.InChange(ctx, "adding a note", func(tx pgx.Tx) error {
		if _, err := s.Queries.TeamSettingsLock(ctx, tx, teamID); err != nil {
			return err
		}
		device, err := s.lockNoted(ctx, tx, teamID, n)
		if err != nil {
			return err
		}
		count, err := s.Queries.NoteCount(ctx, tx, teamID)
		if err != nil {
			return err
		}
		if count >= roomsensor.MaxNotes {
			return roomsensor.TooManyNotes()
		}
		return s.Queries.NoteInsert(ctx, tx, db.NoteInsertParams{
			TeamID: teamID, DeviceID: device, AssignmentID: n.AssignmentID, At: n.At, Text: n.Text, AuthorID: pg.PersonOf(ctx),
		})
	})
}

// lockNoted locks what a note is about until the transaction ends, and returns the device. It locks the device before
// the assignment, as all transactions do. The device of an assignment never changes.
func (s *Store) lockNoted(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, n *roomsensor.Note) (uuid.UUID, error) {
	if n.AssignmentID == nil {
		return n.DeviceID, s.lockTeamDevice(ctx, tx, teamID, n.DeviceID)
	}
	seen, err := s.Queries.AssignmentGet(ctx, tx, db.AssignmentGetParams{TeamID: teamID, AssignmentID: *n.AssignmentID})
	if err != nil {
		return uuid.Nil, err
	}
	if err := s.lockTeamDevice(ctx, tx, teamID, seen.DeviceID); err != nil {
		return uuid.Nil, err
	}
	row, err := s.Queries.AssignmentLock(ctx, tx, db.AssignmentLockParams{TeamID: teamID, AssignmentID: *n.AssignmentID})
	if err != nil {
		return uuid.Nil, err
	}
	a := AssignmentOf(&row)
	if _, ok := a.Person(); !ok {
		return uuid.Nil, roomsensor.ErrNotFound
	}
	return seen.DeviceID, nil
}

// DeleteNote deletes a note of a team.
func (s *Store) DeleteNote(ctx context.Context, teamID, noteID uuid.UUID) error {
	return s.InChange(ctx, "deleting a note", func(tx pgx.Tx) error {
		return pg.ChangedRow(s.Queries.NoteDelete(ctx, tx, db.NoteDeleteParams{TeamID: teamID, NoteID: noteID}))
	})
}
