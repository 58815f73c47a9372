package admin

import (
	"context"
	"encoding/json"

	"roomsensor/internal/roomsensor"
)

// AuditEntry is one change in the audit log.
type AuditEntry struct {
	At           string                 `json:"at"`
	ActorKind    roomsensor.ActorKind   `json:"actor_kind"    table:"-"`
	Actor        string                 `json:"actor"`
	UserID       *string                `json:"user_id"       table:"-"`
	DatabaseUser string                 `json:"database_user" table:"-"`
	TeamID       *string                `json:"team_id"       table:"-"`
	Action       roomsensor.AuditAction `json:"action"`
	ObjectKind   string                 `json:"object_kind"`
	ObjectID     string                 `json:"object_id"     table:"-"`
	ObjectName   *string                `json:"object_name"`
	DeviceID     *string                `json:"device_id"     table:"-"`
	DeviceName   *string                `json:"device_name"`
	Before       json.RawMessage        `json:"before"        table:"-"` // null for a creation
	After        json.RawMessage        `json:"after"         table:"-"` // null for a deletion
	Reason       *string                `json:"reason"        table:"-"`
}

func viewAuditEntry(e *roomsensor.AuditEntry) AuditEntry {
	view := AuditEntry{
		At: roomsensor.FormatTime(e.At), ActorKind: e.Actor.Kind, Actor: e.Actor.Name, DatabaseUser: e.DatabaseUser,
		Action: e.Action, ObjectKind: e.ObjectKind, ObjectID: e.ObjectID, Before: e.Before, After: e.After,
	}
	if e.Actor.UserID != nil {
		view.UserID = new(e.Actor.UserID.String())
	}
	if e.TeamID != nil {
		view.TeamID = new(e.TeamID.String())
	}
	if e.ObjectName != "" {
		view.ObjectName = &e.ObjectName
	}
	if e.Reason != "" {
		view.Reason = &e.Reason
	}
	if e.DeviceID != nil {
		view.DeviceID, view.DeviceName = new(e.DeviceID.String()), &e.DeviceName
	}
	return view
}

// AuditLog lists entries of the audit log, newest first.
func (o *Operator) AuditLog(ctx context.Context, q roomsensor.AuditQuery) (List[AuditEntry], error) {
	entries, err := o.store.AuditEntries(ctx, q)
	return listOf(entries, viewAuditEntry), o.explain(ctx, err)
}
