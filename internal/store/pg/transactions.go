package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// The parameters of the server that the trigger audit_record reads: the actor of a transaction, and the reason for it.
const (
	actorSetting  = "roomsensor.actor"
	ReasonSetting = "roomsensor.reason"
)

// ActorText returns the value of actorSetting for the actor of a context; empty for an unknown one.
func ActorText(ctx context.Context) string {
	actor, ok := roomsensor.ActorOf(ctx)
	if !ok {
		return ""
	}
	text, _ := json.Marshal(actor) //nolint:errchkjson // Encoding strings never fails.
	return string(text)
}

// PersonOf returns the id of the person who acts, or nil for an operator or a program.
func PersonOf(ctx context.Context) *uuid.UUID {
	actor, _ := roomsensor.ActorOf(ctx)
	return actor.UserID
}

// InTx runs a function in a transaction of the default isolation level.
func (s *DB) InTx(ctx context.Context, doing string, run func(pgx.Tx) error) error {
	if err := pgx.BeginFunc(ctx, s.Pool, run); err != nil {
		return fmt.Errorf("%s: %w", doing, Translate(err))
	}
	return nil
}

// InChange is InTx for what the audit log records: the entries of the transaction have the actor of ctx.
func (s *DB) InChange(ctx context.Context, doing string, run func(pgx.Tx) error) error {
	return s.InTx(ctx, doing, func(tx pgx.Tx) error {
		if err := s.SetActor(ctx, tx); err != nil {
			return err
		}
		return run(tx)
	})
}

// SetActor sets the actor of ctx for the rest of a transaction. It is the only place that checks the right of the
// actor, if the change needs one: a right is checked when it is used. Its error is ErrNotFound for a person who is not
// a member any more, that of roomsensor.RoleNeeded for a role that is too small, and rate_limit_exceeded after
// MaxChanges changes.
func (s *DB) SetActor(ctx context.Context, tx pgx.Tx) error {
	if err := s.Set(ctx, tx, actorSetting, ActorText(ctx)); err != nil {
		return err
	}
	actor, _ := roomsensor.ActorOf(ctx)
	if actor.UserID != nil {
		if err := s.limitChanges(ctx, tx, &actor); err != nil {
			return err
		}
	}
	if actor.Right == nil {
		return nil
	}
	name, err := s.Queries.MembershipRole(ctx, tx, db.MembershipRoleParams{
		TeamID: actor.Right.TeamID, UserID: *actor.UserID,
	})
	if err != nil {
		return err
	}
	if role, _ := roomsensor.ParseRole(name); role < actor.Right.Role {
		return roomsensor.RoleNeeded(actor.Right.Role)
	}
	return nil
}

// limitChanges refuses the change of a person if the person, or all people of the team, have made MaxChanges.
func (s *DB) limitChanges(ctx context.Context, tx pgx.Tx, actor *roomsensor.Actor) error {
	p := db.AuditCountRecentParams{UserID: *actor.UserID, Most: roomsensor.MaxChanges}
	if actor.Right != nil {
		p.TeamID = &actor.Right.TeamID
	}
	made, err := s.Queries.AuditCountRecent(ctx, tx, p)
	if err != nil {
		return err
	}
	if max(made.OfPerson, made.OfTeam) >= roomsensor.MaxChanges {
		return roomsensor.TooManyChanges()
	}
	return nil
}

// InSnapshot runs a function that only reads, from one snapshot. It forces custom plans: a generic plan of a query for
// some devices and hours reads the hours of all devices in all chunks.
func (s *DB) InSnapshot(ctx context.Context, doing string, run func(pgx.Tx) error) error {
	return s.snapshotOf(ctx, s.Pool, doing, run)
}

// snapshotOf is InSnapshot on a server.
func (s *DB) snapshotOf(ctx context.Context, from Reader, doing string, run func(pgx.Tx) error) error {
	return s.ReadOnly(ctx, from, doing, func(tx pgx.Tx) error {
		if err := s.Set(ctx, tx, "plan_cache_mode", "force_custom_plan"); err != nil {
			return err
		}
		return run(tx)
	})
}

// ReadOnly runs a function that only reads, from one snapshot of a server.
func (s *DB) ReadOnly(ctx context.Context, from Reader, doing string, run func(pgx.Tx) error) error {
	complete := false
	err := pgx.BeginTxFunc(ctx, from, Snapshot, func(tx pgx.Tx) error {
		err := run(tx)
		complete = err == nil
		return err
	})
	if err != nil && !complete { // The end of a transaction that only reads cannot make its result wrong.
		return fmt.Errorf("%s: %w", doing, Translate(err))
	}
	return nil
}

// Snapshot are the options of a transaction that only reads.
var Snapshot = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

// ReadCommitted are the options of a transaction in which each statement sees what was committed before it, whatever
// level is the default.
var ReadCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// Set sets parameters of the server, given as names and values, until the transaction ends.
func (s *DB) Set(ctx context.Context, tx pgx.Tx, pairs ...string) error {
	return s.Queries.SettingsSet(ctx, tx, Settings(pairs...))
}

// Settings returns the parameters of SettingsSet, given as names and values.
func Settings(pairs ...string) (p db.SettingsSetParams) {
	for pair := range slices.Chunk(pairs, 2) {
		p.Names, p.SettingValues = append(p.Names, pair[0]), append(p.SettingValues, pair[1])
	}
	return p
}

// DeleteInParts runs a deletion, each time in a transaction of its own, until it deletes nothing, and returns how many
// rows it deleted.
func (s *DB) DeleteInParts(
	ctx context.Context, doing string, part func(tx pgx.Tx) (rows int64, err error),
) (total int64, err error) {
	for more := true; more; {
		err := s.InTx(ctx, doing, func(tx pgx.Tx) error {
			rows, err := part(tx)
			total, more = total+rows, rows > 0
			return err
		})
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
