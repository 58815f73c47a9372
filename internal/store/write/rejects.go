package write

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// Rejects lists rejects without their payload, the newest first.
func (s *Store) Rejects(ctx context.Context, q roomsensor.RejectQuery) ([]roomsensor.Reject, error) {
	rows, err := s.Queries.RejectList(ctx, s.Pool, db.RejectListParams{
		TeamID: q.TeamID, Reason: (*string)(q.Reason), HardwareID: q.HardwareID, Unit: q.Unit, SourceID: q.SourceID,
		Since: q.Since,
		Most:  int64(q.Limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing rejects: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.RejectListRow) roomsensor.Reject {
		return reject(&db.RejectedUpload{
			ID: row.ID, ReceivedAt: row.ReceivedAt, StreamSequence: row.StreamSequence, TeamID: row.TeamID,
			HardwareID: row.HardwareID, Unit: row.Unit, SourceID: row.SourceID, Reason: row.Reason, Detail: row.Detail,
			ReplayedAt: row.ReplayedAt,
		})
	}), nil
}

// RejectCount counts the rejects with a reason.
func (s *Store) RejectCount(ctx context.Context, reason roomsensor.Reason) (int64, error) {
	count, err := s.Queries.RejectCountByReason(ctx, s.Pool, string(reason))
	if err != nil {
		return 0, fmt.Errorf("counting rejects: %w", pg.Translate(err))
	}
	return count, nil
}

// TeamRejects lists the rejects of uploads that came with a credential of a team, without their payload, the newest
// first (A8.2).
func (s *Store) TeamRejects(
	ctx context.Context, teamID uuid.UUID, q roomsensor.TeamRejectQuery,
) ([]roomsensor.Reject, error) {
	before := roomsensor.RejectPosition{ReceivedAt: roomsensor.Forever, ID: uuid.Max}
	if q.After != nil {
		before = *q.After
	}
	var since time.Time
	if q.Since != nil {
		since = *q.Since
	}
	var rows []db.RejectListByTeamRow
	err := s.InSnapshot(ctx, "listing the rejects of a team", func(tx pgx.Tx) error {
		// The index has the order. With outdated statistics, the planner would sort all rejects of the team.
		err := s.Set(ctx, tx, "enable_sort", "off")
		if err != nil {
			return err
		}
		rows, err = s.Queries.RejectListByTeam(ctx, tx, db.RejectListByTeamParams{
			TeamID: teamID, BeforeAt: before.ReceivedAt, BeforeID: before.ID, Since: since,
			Reason: (*string)(q.Reason), HardwareID: q.HardwareID, Unit: q.Unit, SourceID: q.SourceID, Most: int64(q.Limit),
		})
		return err
	})
	return pg.Convert(rows, func(row *db.RejectListByTeamRow) roomsensor.Reject {
		return reject(&db.RejectedUpload{
			ID: row.ID, ReceivedAt: row.ReceivedAt, TeamID: &teamID, HardwareID: row.HardwareID, Unit: row.Unit,
			Reason: row.Reason, Detail: row.Detail, ReplayedAt: row.ReplayedAt,
		})
	}), err
}

// RejectGroups counts the rejects of a team by reason and unit, those with the newest reject first.
func (s *Store) RejectGroups(
	ctx context.Context, teamID uuid.UUID, q roomsensor.RejectGroupQuery,
) ([]roomsensor.RejectGroup, error) {
	rows, err := s.Queries.RejectGroupList(ctx, s.Pool, db.RejectGroupListParams{
		TeamID: teamID, Reason: (*string)(q.Reason), Unit: q.Unit, SourceID: q.SourceID,
		Most: int64(q.Limit), Skipped: int64(q.Skip),
	})
	if err != nil {
		return nil, fmt.Errorf("counting the rejects of a team: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.RejectGroupListRow) roomsensor.RejectGroup {
		return roomsensor.RejectGroup{
			Reason: roomsensor.Reason(row.Reason), Unit: row.Unit, Count: row.Total, Replayed: row.Replayed,
			First: row.FirstAt.UTC(), Last: row.LastAt.UTC(),
		}
	}), nil
}

// RejectsOfGroup lists the positions of the rejects of a group of a team after a position, the oldest first.
func (s *Store) RejectsOfGroup(
	ctx context.Context, teamID uuid.UUID, p roomsensor.RejectGroupPage,
) ([]roomsensor.RejectPosition, error) {
	rows, err := s.Queries.RejectGroupPage(ctx, s.Pool, db.RejectGroupPageParams{
		TeamID: teamID, Reasons: pg.Texts(p.Reasons), Unit: p.Unit, SourceID: p.SourceID,
		AfterAt: p.After.ReceivedAt, AfterID: p.After.ID, Most: int64(p.Limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing the rejects of a group: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.RejectGroupPageRow) roomsensor.RejectPosition {
		return roomsensor.RejectPosition{ReceivedAt: row.ReceivedAt.UTC(), ID: row.ID}
	}), nil
}

// CountRejectsOfGroup counts what RejectsOfGroup lists without a limit.
func (s *Store) CountRejectsOfGroup(
	ctx context.Context, teamID uuid.UUID, p roomsensor.RejectGroupPage,
) (int64, error) {
	count, err := s.Queries.RejectGroupCount(ctx, s.Pool, db.RejectGroupCountParams{
		TeamID: teamID, Reasons: pg.Texts(p.Reasons), Unit: p.Unit, SourceID: p.SourceID,
		AfterAt: p.After.ReceivedAt, AfterID: p.After.ID,
	})
	if err != nil {
		return 0, fmt.Errorf("counting the rejects of a group: %w", pg.Translate(err))
	}
	return count, nil
}

// TeamReject returns a reject of a team with its payload.
func (s *Store) TeamReject(ctx context.Context, teamID, id uuid.UUID) (roomsensor.Reject, error) {
	row, err := s.Queries.RejectGetByTeam(ctx, s.Pool, db.RejectGetByTeamParams{TeamID: teamID, RejectID: id})
	if err != nil {
		return roomsensor.Reject{}, pg.TranslateByID(err, "reading a reject", roomsensor.KindReject, id.String())
	}
	return reject(&row), nil
}

// Reject returns a reject with its payload.
func (s *Store) Reject(ctx context.Context, id uuid.UUID) (roomsensor.Reject, error) {
	row, err := s.Queries.RejectGet(ctx, s.Pool, id)
	if err != nil {
		return roomsensor.Reject{}, pg.TranslateByID(err, "reading a reject", roomsensor.KindReject, id.String())
	}
	return reject(&row), nil
}

// SkipUpload stores the reject of an upload that an operator sets aside, and returns it as it is stored. If a worker
// stored the same reject first, that one stays.
func (s *Store) SkipUpload(ctx context.Context, r roomsensor.Reject) (roomsensor.Reject, error) {
	if err := s.Queries.RejectInsert(ctx, s.Pool, rejectParams([]roomsensor.Reject{r})); err != nil {
		return r, fmt.Errorf("storing a reject: %w", pg.Translate(err))
	}
	row, err := s.Queries.RejectGetByMessage(ctx, s.Pool, db.RejectGetByMessageParams{
		ReceivedAt: r.Arrival.At, Reason: string(r.Reason), Unit: cmp.Or(r.Unit, r.HardwareID),
		StreamSequence: int64(r.Arrival.Sequence), //nolint:gosec // Counts from 1.
	})
	if err != nil {
		return r, fmt.Errorf("reading a reject: %w", pg.Translate(err))
	}
	return reject(&row), nil
}

const (
	// trimRows and trimBytes bound one transaction that deletes rejects, so that it holds locks for a moment only.
	trimRows  = 1_000
	trimBytes = 16 << 20
	// trimFor bounds how long one call deletes rejects.
	trimFor = 5 * time.Second
)

// TrimRejects deletes rejects that exceed the limits, in short transactions, and returns what it deleted and what is
// left. It stops after trimFor, or when another process deletes rejects; neither is an error.
func (s *Store) TrimRejects(ctx context.Context, limits roomsensor.RejectLimits) (t roomsensor.RejectTrim, err error) {
	for started, more := time.Now(), true; more && time.Since(started) < trimFor; {
		var step roomsensor.RejectTrim
		err = s.InTx(ctx, "trimming rejects", func(tx pgx.Tx) error {
			step, err = s.trimRejects(ctx, tx, limits)
			return err
		})
		if err != nil {
			return t, err
		}
		t.Aged, t.Evicted, t.TeamEvicted = t.Aged+step.Aged, t.Evicted+step.Evicted, t.TeamEvicted+step.TeamEvicted
		t.Kept, t.Bytes = step.Kept, step.Bytes
		more = step.Aged+step.Evicted+step.TeamEvicted > 0
	}
	return t, nil
}

// trimRejects deletes some rejects, the expired ones first. It returns what was there before.
func (s *Store) trimRejects(
	ctx context.Context, tx pgx.Tx, limits roomsensor.RejectLimits,
) (t roomsensor.RejectTrim, err error) {
	teams, err := s.Queries.RejectUsageList(ctx, tx)
	if err != nil {
		return t, err
	}
	for i := range teams {
		t.Kept, t.Bytes = t.Kept+teams[i].Rejects, t.Bytes+teams[i].Bytes
	}
	if free, err := s.Queries.RejectTrimLock(ctx, tx); err != nil || !free {
		return t, err
	}
	t.Aged, err = s.Queries.RejectTrimAge(ctx, tx, db.RejectTrimAgeParams{
		KeepSeconds: limits.Keep.Seconds(), Most: trimRows,
	})
	if err != nil || t.Aged > 0 || len(teams) == 0 {
		return t, err
	}
	most, evicted := maxTeamBytes(teams, limits.MaxBytes), &t.Evicted
	if limits.TeamMaxBytes <= most {
		most, evicted = limits.TeamMaxBytes, &t.TeamEvicted
	}
	if largest := teams[0]; largest.Bytes > most {
		*evicted, err = s.Queries.RejectTrimTeam(ctx, tx, db.RejectTrimTeamParams{
			TeamID: largest.TeamID, Most: trimRows, ExcessBytes: min(largest.Bytes-most, trimBytes),
		})
	}
	return t, err
}

// maxTeamBytes returns the size down to which the teams, the largest first, must delete rejects so that all of them
// together have at most total. This is where it ends if the largest team deletes its oldest reject again and again
// (decision 53 b).
func maxTeamBytes(teams []db.RejectUsage, total int64) int64 {
	var smaller int64
	for i := range teams {
		smaller += teams[i].Bytes
	}
	for i := range teams {
		// The first i+1 teams share what the others leave.
		smaller -= teams[i].Bytes
		share := (total - smaller) / int64(i+1)
		if i+1 == len(teams) || share >= teams[i+1].Bytes {
			return share
		}
	}
	return total
}

func reject(row *db.RejectedUpload) roomsensor.Reject {
	return roomsensor.Reject{
		ID: row.ID, HardwareID: row.HardwareID, Unit: row.Unit, Reason: roomsensor.Reason(row.Reason), Detail: row.Detail,
		Arrival: roomsensor.Arrival{
			At: row.ReceivedAt.UTC(), Sequence: uint64(row.StreamSequence), Team: row.TeamID, //nolint:gosec // Counts from 1.
			Source: row.SourceID, Precision: row.Precision,
		},
		Payload: row.Payload, ReplayedAt: pg.UTC(row.ReplayedAt),
	}
}

// rejectParams returns rejects as the arrays of RejectInsert. The zero UUID and the empty string stand for null.
func rejectParams(rejects []roomsensor.Reject) (p db.RejectInsertParams) {
	for i := range rejects {
		r := &rejects[i]
		p.ReceivedAt = append(p.ReceivedAt, r.Arrival.At)
		p.StreamSequence = append(p.StreamSequence, int64(r.Arrival.Sequence)) //nolint:gosec // Counts from 1.
		p.Reason = append(p.Reason, string(r.Reason))
		p.Detail = append(p.Detail, r.Detail)
		team, source := uuid.Nil, uuid.Nil
		if r.Arrival.Team != nil {
			team = *r.Arrival.Team
		}
		if r.Arrival.Source != nil {
			source = *r.Arrival.Source
		}
		p.TeamID = append(p.TeamID, team)
		p.HardwareID = append(p.HardwareID, pg.Text(r.HardwareID))
		p.Unit = append(p.Unit, pg.Text(cmp.Or(r.Unit, r.HardwareID)))
		p.SourceID = append(p.SourceID, source)
		p.Precision = append(p.Precision, r.Arrival.Precision)
		p.Payload = append(p.Payload, r.Payload)
	}
	return p
}
