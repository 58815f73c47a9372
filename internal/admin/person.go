package admin

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/csvenc"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/people"
)

// PersonRecord is what a team stores about a person whom assignments name, except readings.
type PersonRecord struct {
	ExportedAt  string             `json:"exported_at"`
	TeamID      string             `json:"team_id"`
	Label       *string            `json:"label"`        // that was asked for, or null
	ExternalRef *string            `json:"external_ref"` // that was asked for, or null
	Assignments []PersonAssignment `json:"assignments"`
	Notes       []PersonNote       `json:"notes"`
	AuditLog    []AuditEntry       `json:"audit_log"` // changes of these assignments, deleted ones included, and of notes
	Mentions    []PersonMention    `json:"mentions"`
}

// PersonAssignment is an assignment with its device and the number of its readings.
type PersonAssignment struct {
	Assignment

	HardwareID  string  `json:"hardware_id"`
	DisplayName *string `json:"display_name"`
	Readings    int64   `json:"readings"`
}

// PersonNote is a note about the person.
type PersonNote struct {
	ID           string `json:"note_id"`
	AssignmentID string `json:"assignment_id"`
	At           string `json:"at"`
	Text         string `json:"text"`
}

func viewNote(n *roomsensor.Note) PersonNote {
	return PersonNote{n.ID.String(), n.AssignmentID.String(), roomsensor.FormatTime(n.At.UTC()), n.Text}
}

// PersonMention is another place that contains the label or the external_ref.
type PersonMention struct {
	Table string `json:"table"`
	ID    string `json:"id"`
	Field string `json:"field"`
	Text  string `json:"text"`
}

func viewMention(m *roomsensor.Mention) PersonMention { return PersonMention(*m) }

// ErasedPerson is what an erasure changed, by table. The mentions remain.
type ErasedPerson struct {
	DryRun          bool            `json:"dry_run"`
	ReplacedBy      *string         `json:"replaced_by"` // new label; null if nothing was changed
	Assignments     int64           `json:"assignments"`
	Notes           int64           `json:"notes"`
	AuditLog        int64           `json:"audit_log"`
	IdempotencyKeys int64           `json:"idempotency_keys"`
	Sessions        int64           `json:"sessions"`
	SourceState     int64           `json:"source_state"` // newest messages of sources
	RejectedUploads int64           `json:"rejected_uploads"`
	Mentions        []PersonMention `json:"mentions"`
}

// PersonErasure selects what ErasePerson does.
type PersonErasure struct {
	Mentions bool // also replaces the name in all texts that are copies, wherever it is
	DryRun   bool // changes nothing
}

// ExportPerson returns what a team stores about a person, and writes the readings of the rooms during the assignments
// as CSV, in the long shape with ingested_at, the newest of each assignment first.
func (o *Operator) ExportPerson(
	ctx context.Context, teamID uuid.UUID, subject roomsensor.Subject, readings io.Writer,
) (PersonRecord, error) {
	found, err := o.store.SubjectRecord(ctx, teamID, subject)
	if err != nil {
		return PersonRecord{}, o.explain(ctx, err)
	}
	record := PersonRecord{
		ExportedAt: roomsensor.FormatTime(o.timestamp()), TeamID: teamID.String(), Label: subject.Label,
		ExternalRef: subject.ExternalRef, Assignments: make([]PersonAssignment, len(found.Assignments)),
		Notes: listOf(found.Notes, viewNote).Data, AuditLog: listOf(found.Changes, viewAuditEntry).Data,
		Mentions: listOf(found.Mentions, viewMention).Data,
	}
	devices := make([]roomsensor.NamedDevice, len(found.Assignments))
	for i := range found.Assignments {
		a := &found.Assignments[i]
		devices[i] = roomsensor.NamedDevice{ID: a.DeviceID, DisplayName: a.DisplayName}
		record.Assignments[i] = PersonAssignment{viewAssignment(&a.Assignment), a.HardwareID, a.DisplayName, 0}
	}
	out := bufio.NewWriter(readings)
	long := csvenc.NewLong(devices, csvenc.Columns{Metrics: roomsensor.Metrics[:], IngestedAt: true})
	_, _ = out.Write(long.AppendHeader(nil)) // Flush returns the error.
	for i := range found.Assignments {
		rows, err := o.writeReadings(ctx, teamID, &found.Assignments[i].Assignment, long, out)
		if err != nil {
			return PersonRecord{}, o.explain(ctx, err)
		}
		record.Assignments[i].Readings = rows
	}
	if err := out.Flush(); err != nil {
		return PersonRecord{}, fmt.Errorf("writing readings: %w", err)
	}
	return record, nil
}

// readingsPage is the number of readings of one query, some months of one device.
const readingsPage = 50_000

// writeReadings writes the readings of the device of an assignment during it.
func (o *Operator) writeReadings(
	ctx context.Context, teamID uuid.UUID, a *roomsensor.Assignment, long *csvenc.Long, out io.Writer,
) (rows int64, err error) {
	query := roomsensor.ReadingQuery{Window: a.Window(), Limit: readingsPage}
	for {
		page, oldest, line := 0, time.Time{}, []byte(nil)
		err := o.store.EachReading(ctx, teamID, a.DeviceID, query, func(r *roomsensor.Reading) {
			row := roomsensor.ExportRow{
				DeviceID: a.DeviceID, BucketAt: r.BucketAt, Values: r.Values, IngestedAt: r.IngestedAt,
			}
			line = long.AppendRow(line[:0], &row)
			_, _ = out.Write(line) // Flush returns the error.
			page, oldest = page+1, r.BucketAt
		})
		rows += int64(page)
		if err != nil || page < readingsPage {
			return rows, err
		}
		query.Before = &oldest
	}
}

// ErasePerson replaces the label of a person by a neutral name and clears the external_ref, in one transaction. The
// readings stay: they belong to the room.
func (o *Operator) ErasePerson(
	ctx context.Context, teamID uuid.UUID, subject roomsensor.Subject, erasure PersonErasure,
) (ErasedPerson, error) {
	done, err := o.store.EraseSubject(ctx, teamID, subject, people.SubjectErasure(erasure))
	if err != nil {
		return ErasedPerson{}, o.explain(ctx, err)
	}
	view := ErasedPerson{
		DryRun: erasure.DryRun, Assignments: done.Assignments, Notes: done.Notes, AuditLog: done.AuditEntries,
		IdempotencyKeys: done.Responses, Sessions: done.Notices, SourceState: done.Messages,
		RejectedUploads: done.Rejects,
		Mentions:        listOf(done.Mentions, viewMention).Data,
	}
	if !view.Empty() && !erasure.DryRun {
		view.ReplacedBy = new(done.Name())
	}
	return view, nil
}

// Empty reports whether nothing is stored about a person.
func (p *PersonRecord) Empty() bool { return len(p.Assignments)+len(p.AuditLog)+len(p.Mentions) == 0 }

// Empty reports whether there is nothing to erase.
func (p *ErasedPerson) Empty() bool {
	return p.Assignments+p.Notes+p.AuditLog+p.IdempotencyKeys+p.Sessions+p.SourceState+p.RejectedUploads == 0
}
