package people

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// AuditEntries lists entries of the audit log, of one team or of all, the newest first. It ignores After and Until.
func (s *Store) AuditEntries(ctx context.Context, q roomsensor.AuditQuery) ([]roomsensor.AuditEntry, error) {
	params := db.AuditListParams{OfTeam: q.TeamID, Since: q.Since, Most: int64(q.Limit)}
	if q.Actor != "" {
		params.Actor = &q.Actor
	}
	if q.Object != "" {
		params.Object = &q.Object
	}
	rows, err := s.Queries.AuditList(ctx, s.Pool, params)
	if err != nil {
		return nil, fmt.Errorf("listing the audit log: %w", pg.Translate(err))
	}
	return pg.Convert(rows, auditEntry), nil
}

// TeamAudit lists a page of the audit log of a team, the newest entries first. It ignores TeamID.
func (s *Store) TeamAudit(
	ctx context.Context, teamID uuid.UUID, q roomsensor.AuditQuery,
) ([]roomsensor.AuditEntry, error) {
	params := db.AuditListByTeamParams{
		TeamID: teamID, BeforeAt: roomsensor.Forever, Actor: q.Actor, Object: q.Object, Most: int64(q.Limit),
	}
	if q.Since != nil {
		params.Since = *q.Since
	}
	if q.Until != nil {
		params.BeforeAt = *q.Until // With the smallest id: an entry at that time is not before it.
	}
	if q.After != nil && (q.Until == nil || q.After.At.Before(*q.Until)) {
		params.BeforeAt, params.BeforeID = q.After.At, q.After.ID
	}
	rows, err := s.Queries.AuditListByTeam(ctx, s.Pool, params)
	if err != nil {
		return nil, fmt.Errorf("listing the audit log: %w", pg.Translate(err))
	}
	return pg.Convert(rows, auditEntry), nil
}

func auditEntry(row *db.AuditLog) roomsensor.AuditEntry {
	return roomsensor.AuditEntry{
		ID: row.ID, At: row.At.UTC(),
		Actor:        roomsensor.Actor{Kind: roomsensor.ActorKind(row.ActorKind), Name: row.Actor, UserID: row.UserID},
		DatabaseUser: row.DatabaseUser, TeamID: row.TeamID, Action: roomsensor.AuditAction(row.Action),
		ObjectKind: row.ObjectKind, ObjectID: row.ObjectID, ObjectName: pg.Text(row.ObjectName),
		DeviceID: row.DeviceID, DeviceName: pg.Text(row.DeviceName), Before: row.Before, After: row.After,
		Reason: pg.Text(row.Reason),
	}
}

// purgeAuditEntries bounds one deletion of entries, which have up to 10 KB each.
const purgeAuditEntries = 1000

// PurgeAudit deletes the entries of the audit log that are older than keep, and those with which the API keys of a team
// exceed their limit, and returns their number. If another process does so at the same time, it leaves the rest to that
// process.
func (s *Store) PurgeAudit(ctx context.Context, keep time.Duration) (entries int64, err error) {
	entries, err = s.DeleteInParts(ctx, "deleting old entries of the audit log", func(tx pgx.Tx) (int64, error) {
		return s.Queries.AuditExpire(ctx, tx, db.AuditExpireParams{
			KeepSeconds: keep.Seconds(), Most: purgeAuditEntries,
		})
	})
	if err != nil {
		return entries, err
	}
	teams, err := s.fleet.Teams(ctx)
	if err != nil {
		return entries, err
	}
	for i := range teams {
		trimmed, err := s.DeleteInParts(ctx, "trimming the audit log of a team", func(tx pgx.Tx) (int64, error) {
			return s.Queries.AuditTrim(ctx, tx, db.AuditTrimParams{OfTeam: teams[i].ID, Most: purgeAuditEntries})
		})
		entries += trimmed
		if err != nil {
			return entries, err
		}
	}
	return entries, nil
}
