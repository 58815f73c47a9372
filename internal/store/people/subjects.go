package people

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/fleet"
	"roomsensor/internal/store/pg"
)

const (
	// maxMentions bounds the mentions of a subject that are listed.
	maxMentions = 1000
	// maxMentionText bounds the text of a mention, in characters.
	maxMentionText = 200
)

// SubjectRecord returns what a team stores about a subject, except readings.
func (s *Store) SubjectRecord(
	ctx context.Context, teamID uuid.UUID, subject roomsensor.Subject,
) (record roomsensor.SubjectRecord, err error) {
	err = s.InSnapshot(ctx, "reading what is stored about a person", func(tx pgx.Tx) error {
		found, err := s.findSubject(ctx, tx, teamID, subject)
		if err != nil {
			return err
		}
		changes, err := s.Queries.SubjectAuditList(ctx, tx, db.SubjectAuditListParams{
			TeamID: &teamID, AssignmentIds: found.ids,
		})
		if err != nil {
			return err
		}
		notes, err := s.Queries.SubjectNoteList(ctx, tx, db.SubjectNoteListParams{
			TeamID: teamID, Label: subject.Label, ExternalRef: subject.ExternalRef,
		})
		if err != nil {
			return err
		}
		record.Assignments, record.Changes = found.assignments, pg.Convert(changes, auditEntry)
		record.Notes = pg.Convert(notes, func(row *db.Note) roomsensor.Note {
			return roomsensor.Note{
				ID: row.ID, DeviceID: row.DeviceID, AssignmentID: row.AssignmentID, At: row.At, Text: row.Text,
			}
		})
		record.Mentions, err = s.mentions(ctx, tx, teamID, found)
		return err
	})
	return record, err
}

// foundSubject is a subject in the tables of a team.
type foundSubject struct {
	assignments []roomsensor.DeviceAssignment
	ids         []string // of the assignments, and of those that had the label or the external_ref before
	texts       *roomsensor.Texts
}

func (s *Store) findSubject(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, subject roomsensor.Subject,
) (*foundSubject, error) {
	rows, err := s.Queries.SubjectAssignmentList(ctx, tx, db.SubjectAssignmentListParams{
		TeamID: teamID, Label: subject.Label, ExternalRef: subject.ExternalRef,
	})
	if err != nil {
		return nil, err
	}
	ids, err := s.Queries.SubjectPastAssignmentList(ctx, tx, db.SubjectPastAssignmentListParams{
		TeamID: &teamID, Label: subject.Label, ExternalRef: subject.ExternalRef,
	})
	if err != nil {
		return nil, err
	}
	// No ids must be an empty array: null would match no row, not even in a NOT.
	found := &foundSubject{ids: append([]string{}, ids...), assignments: make([]roomsensor.DeviceAssignment, len(rows))}
	texts := append(textsOf(subject.Label), textsOf(subject.ExternalRef)...)
	for i := range rows {
		a := roomsensor.DeviceAssignment{
			Assignment: fleet.AssignmentOf(&rows[i].Assignment),
			HardwareID: rows[i].HardwareID, DisplayName: rows[i].DisplayName,
		}
		found.assignments[i] = a
		found.ids = append(found.ids, a.ID.String())
		texts = append(append(texts, a.Label), textsOf(a.ExternalRef)...)
	}
	slices.Sort(found.ids)
	slices.Sort(texts)
	found.ids, found.texts = slices.Compact(found.ids), roomsensor.NewTexts(slices.Compact(texts)...)
	return found, nil
}

func textsOf(text *string) []string {
	if text == nil {
		return nil
	}
	return []string{*text}
}

// mentions lists the places that contain the texts of a subject, without the subject's own assignments.
func (s *Store) mentions(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, found *foundSubject,
) ([]roomsensor.Mention, error) {
	if found.texts.None() {
		return []roomsensor.Mention{}, nil
	}
	rows, err := s.Queries.SubjectMentionList(ctx, tx, db.SubjectMentionListParams{
		TeamID: teamID, AssignmentIds: found.ids, Pattern: found.texts.Pattern(), Most: maxMentions,
	})
	if err != nil {
		return nil, err
	}
	return pg.Convert(rows, func(row *db.SubjectMentionListRow) roomsensor.Mention {
		text := []rune(row.Content)
		return roomsensor.Mention{
			Table: row.Place, ID: row.ID, Field: row.Field, Text: string(text[:min(len(text), maxMentionText)]),
		}
	}), nil
}

// SubjectErasure selects what EraseSubject does.
type SubjectErasure struct {
	Mentions bool // also replaces the texts in all places that are copies, wherever they are
	DryRun   bool // changes nothing
}

// errDryRun rolls back a dry run.
var errDryRun = errors.New("dry run")

// EraseSubject replaces the label of a subject's assignments by a neutral name, clears their external_ref and deletes
// their notes, also in the audit log and in stored responses, in one transaction. The readings stay. It records the
// erasure without the name of the person. Names and tags of devices stay; they are mentions.
func (s *Store) EraseSubject(
	ctx context.Context, teamID uuid.UUID, subject roomsensor.Subject, options SubjectErasure,
) (roomsensor.Erasure, error) {
	done := roomsensor.Erasure{ID: uuid.New()}
	err := s.InChange(ctx, "erasing a person", func(tx pgx.Tx) error {
		found, err := s.findSubject(ctx, tx, teamID, subject)
		if err != nil {
			return err
		}
		e := erasing{s, tx, teamID, found, &done}
		if err := e.eraseAssignments(ctx, subject); err != nil {
			return err
		}
		if err := e.eraseCopies(ctx, options.Mentions); err != nil {
			return err
		}
		if done.Mentions, err = s.mentions(ctx, tx, teamID, found); err != nil {
			return err
		}
		if err := e.recordErasure(ctx); err != nil {
			return err
		}
		if options.DryRun {
			return errDryRun
		}
		return nil
	})
	if errors.Is(err, errDryRun) {
		err = nil
	}
	return done, err
}

// erasing is a transaction of EraseSubject.
type erasing struct {
	*Store

	tx     pgx.Tx
	teamID uuid.UUID
	found  *foundSubject
	done   *roomsensor.Erasure
}

// eraseAssignments erases a subject from the assignments and their notes, and from the entries of both in the audit
// log. These changes themselves write entries with the label and the texts, so that the audit log is changed after
// them.
func (e *erasing) eraseAssignments(ctx context.Context, subject roomsensor.Subject) (err error) {
	e.done.Notes, err = e.Queries.SubjectNoteErase(ctx, e.tx, db.SubjectNoteEraseParams{
		TeamID: e.teamID, Label: subject.Label, ExternalRef: subject.ExternalRef,
	})
	if err != nil {
		return err
	}
	e.done.Assignments, err = e.Queries.SubjectAssignmentErase(ctx, e.tx, db.SubjectAssignmentEraseParams{
		TeamID: e.teamID, Label: subject.Label, ExternalRef: subject.ExternalRef, Name: e.done.Name(),
	})
	if err != nil {
		return err
	}
	entries, err := e.Queries.SubjectAuditErase(ctx, e.tx, db.SubjectAuditEraseParams{
		TeamID: &e.teamID, AssignmentIds: e.found.ids, Name: e.done.Name(),
	})
	e.done.AuditEntries = entries - e.done.Assignments - e.done.Notes
	return err
}

// eraseCopies erases a subject from stored responses, pending notices, the morning report and mails that were not sent;
// with mentions, also from all other texts that are copies.
func (e *erasing) eraseCopies(ctx context.Context, mentions bool) (err error) {
	texts := e.found.texts
	if err := e.eraseResponses(ctx, mentions); err != nil || texts.None() {
		return err
	}
	if len(e.found.ids) > 0 { // Sessions belong to no team.
		if e.done.Notices, err = e.Queries.SubjectSessionErase(ctx, e.tx, texts.Pattern()); err != nil {
			return err
		}
		if _, err = e.Queries.MailErase(ctx, e.tx, e.teamID); err != nil {
			return err
		}
	}
	if !mentions {
		return nil
	}
	if err := e.eraseAuditMentions(ctx); err != nil {
		return err
	}
	p := db.SubjectSourceEraseParams{TeamID: e.teamID, Pattern: texts.Pattern()}
	if e.done.Messages, err = e.Queries.SubjectSourceErase(ctx, e.tx, p); err != nil {
		return err
	}
	return e.eraseSubjectRejects(ctx)
}

// eraseResponses erases a subject from the stored responses that show one of the assignments.
func (e *erasing) eraseResponses(ctx context.Context, mentions bool) error {
	p := db.SubjectResponseListParams{TeamID: e.teamID, Ids: e.found.ids}
	if mentions && !e.found.texts.None() {
		p.Pattern = new(e.found.texts.Pattern())
	}
	rows, err := e.Queries.SubjectResponseList(ctx, e.tx, p)
	if err != nil {
		return err
	}
	for i := range rows {
		row := &rows[i]
		response := row.Response
		if containsAny(response, e.found.ids) {
			if response, err = eraseActiveAssignment(response, e.done.Name()); err != nil {
				return err
			}
		}
		if mentions {
			response = e.replaceBytes(response)
		}
		if err := e.Queries.IdempotencyKeyStore(ctx, e.tx, db.IdempotencyKeyStoreParams{
			Response: response, KeyID: row.KeyID, Method: row.Method, Path: row.Path, IdempotencyKey: row.IdempotencyKey,
		}); err != nil {
			return err
		}
		e.done.Responses++
	}
	return nil
}

func containsAny(text []byte, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return bytes.Contains(text, []byte(part)) })
}

// eraseAuditMentions replaces the texts of a subject in all other entries of the team.
func (e *erasing) eraseAuditMentions(ctx context.Context) error {
	rows, err := e.Queries.SubjectAuditMentionList(ctx, e.tx, db.SubjectAuditMentionListParams{
		TeamID: &e.teamID, Pattern: e.found.texts.Pattern(),
	})
	if err != nil {
		return err
	}
	for i := range rows {
		row := &rows[i]
		p := db.SubjectAuditMentionEraseParams{
			TeamID: &e.teamID, At: row.At, ID: row.ID,
			ObjectName: e.replace(row.ObjectName), DeviceName: e.replace(row.DeviceName), Reason: e.replace(row.Reason),
		}
		if p.Before, err = e.replaceStrings(row.Before); err != nil {
			return err
		}
		if p.After, err = e.replaceStrings(row.After); err != nil {
			return err
		}
		if err := e.Queries.SubjectAuditMentionErase(ctx, e.tx, p); err != nil {
			return err
		}
		e.done.AuditEntries++
	}
	return nil
}

func (e *erasing) replace(text *string) *string {
	if text == nil {
		return nil
	}
	return new(string(e.found.texts.Replace([]byte(*text), e.done.Name())))
}

// replaceBytes replaces the texts of a subject in bytes. JSON remains JSON, unless a number or more than one string of
// it make a text.
func (e *erasing) replaceBytes(text []byte) []byte {
	if !e.found.texts.In(text) {
		return text
	}
	if rewritten, err := e.replaceStrings(text); err == nil && !e.found.texts.In(rewritten) {
		return rewritten
	}
	return e.found.texts.Replace(text, e.done.Name())
}

// replaceStrings replaces the texts of a subject in the strings of a JSON object.
func (e *erasing) replaceStrings(object []byte) ([]byte, error) {
	if object == nil {
		return nil, nil
	}
	return rewriteStrings(object, func(_, text string) *string { return e.replace(&text) })
}

// eraseSubjectRejects replaces the texts of a subject in rejects. Uploads that came from the devices as agreed have
// no such text; an unknown member may.
func (e *erasing) eraseSubjectRejects(ctx context.Context) error {
	ids, err := e.Queries.SubjectRejectList(ctx, e.tx, db.SubjectRejectListParams{
		TeamID: e.teamID, Pattern: e.found.texts.Pattern(),
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		row, err := e.Queries.RejectGet(ctx, e.tx, id)
		if err != nil {
			return err
		}
		if err := e.Queries.SubjectRejectErase(ctx, e.tx, db.SubjectRejectEraseParams{
			ID: id, TeamID: e.teamID, Detail: *e.replace(&row.Detail),
			Payload: e.replaceBytes(row.Payload),
		}); err != nil {
			return err
		}
		e.done.Rejects++
	}
	return nil
}

// recordErasure writes the entry of the erasure.
func (e *erasing) recordErasure(ctx context.Context) error {
	if !e.done.Changed() {
		return nil
	}
	after, err := json.Marshal(map[string]int64{
		"assignments": e.done.Assignments, "notes": e.done.Notes, "audit_log": e.done.AuditEntries,
		"idempotency_keys": e.done.Responses, "sessions": e.done.Notices, "source_state": e.done.Messages,
		"rejected_uploads": e.done.Rejects,
	})
	if err != nil {
		return fmt.Errorf("encoding an entry of the audit log: %w", err)
	}
	return e.Queries.SubjectErasureInsert(ctx, e.tx, db.SubjectErasureInsertParams{
		TeamID: e.teamID, ErasureID: e.done.ID.String(), Name: new(e.done.Name()), After: after,
	})
}
