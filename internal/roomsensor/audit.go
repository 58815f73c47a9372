package roomsensor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
)

// ActorKind is what kind of actor made a change.
type ActorKind string

// The kinds of actors.
const (
	ActorPerson   ActorKind = "person"   // who signed in to the dashboard
	ActorAPIKey   ActorKind = "api_key"  // an API client
	ActorOperator ActorKind = "operator" // who ran a command
	ActorSQL      ActorKind = "sql"      // any other program that changed the tables
)

// Actor is who makes a change, for the audit log.
type Actor struct {
	Kind   ActorKind  `json:"kind"`
	Name   string     `json:"name"`              // address of the person, id of the API key, or user name
	UserID *uuid.UUID `json:"user_id,omitempty"` // nil unless it is a person
	Right  *TeamRight `json:"-"`                 // what the change needs; nil unless a person changes a team
}

// TeamRight is the role that a person needs for a change. The transaction of the change checks it, because the role may
// have changed since the request or the form began.
type TeamRight struct {
	TeamID uuid.UUID
	Role   Role
}

// MaxChanges is how many changes a person, and all people of a team, may make in 24 hours. The audit log keeps each for
// more than a year and deletes none early. With 1 KB per entry, a team has 5 MB per day at most.
const MaxChanges = 5000

// TooManyChanges returns the error of a person after MaxChanges.
func TooManyChanges() *Error {
	return &Error{
		Code: CodeRateLimitExceeded, RetryAfter: time.Hour, Limit: "changes",
		Message: fmt.Sprintf("You or your team made %d changes within 24 hours, the most that people may make. "+
			"Try again in an hour. To change many devices, use an API key.", MaxChanges),
	}
}

// actorKey is the key of the actor in a context.
type actorKey struct{}

// WithActor returns a context whose changes are recorded as changes of an actor.
func WithActor(ctx context.Context, actor Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// ActorOf returns the actor of a context; ok is false if it has none. The audit log then has the database user.
func ActorOf(ctx context.Context) (actor Actor, ok bool) {
	actor, ok = ctx.Value(actorKey{}).(Actor)
	return actor, ok
}

// AuditAction is what happened to an object.
type AuditAction string

// The actions of the audit log.
const (
	AuditCreate AuditAction = "create"
	AuditChange AuditAction = "change"
	AuditDelete AuditAction = "delete"
)

// AuditEntry is one change in the audit log.
type AuditEntry struct {
	ID           uuid.UUID
	At           time.Time
	Actor        Actor
	DatabaseUser string     // who was logged in to the database
	TeamID       *uuid.UUID // nil for a change that belongs to no team, such as a person's new password
	Action       AuditAction
	ObjectKind   string // table in words, such as device or api_key
	ObjectID     string
	ObjectName   string     // empty if the object has no name
	DeviceID     *uuid.UUID // device of the object, or nil
	DeviceName   string
	// Before and After are JSON objects by column. Those of a change have only what differs; Before of a creation and
	// After of a deletion are nil.
	Before, After json.RawMessage
	Reason        string // what the actor wrote about the change, or empty
}

// AuditPosition identifies the last row of a page of the audit log.
type AuditPosition struct {
	At time.Time
	ID uuid.UUID
}

// AuditQuery selects entries, the newest first.
type AuditQuery struct {
	TeamID *uuid.UUID // nil for all teams
	Since  *time.Time
	Until  *time.Time     // exclusive
	After  *AuditPosition // last entry of the page before; nil on the first page
	Actor  string         // empty matches all
	Object string         // id of an object or of its device, or a part of a name; empty matches all
	Limit  int
}

// Difference is one field of an entry as text. A side is nil if the field had no value.
type Difference struct {
	Field         string // such as display_name, or metadata.floor
	Before, After *string
}

// Differences lists what an entry changed, by field.
func (e *AuditEntry) Differences() ([]Difference, error) {
	before, err := auditFields(e.Before)
	if err != nil {
		return nil, err
	}
	after, err := auditFields(e.After)
	if err != nil {
		return nil, err
	}
	fields := maps.Clone(before)
	maps.Copy(fields, after)
	differences := make([]Difference, 0, len(fields))
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		differences = append(differences, Difference{field, before[field], after[field]})
	}
	return differences, nil
}

// auditFields returns the members of a JSON object as text, those of an inner object under the names of both.
func auditFields(object json.RawMessage) (map[string]*string, error) {
	fields := map[string]*string{}
	if len(object) == 0 {
		return fields, nil
	}
	return fields, addAuditFields(fields, "", object)
}

func addAuditFields(fields map[string]*string, prefix string, object json.RawMessage) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return fmt.Errorf("reading an entry of the audit log: %w", err)
	}
	for name, value := range members {
		switch {
		case bytes.HasPrefix(value, []byte("{")):
			if err := addAuditFields(fields, prefix+name+".", value); err != nil {
				return err
			}
		case string(value) == "null":
			fields[prefix+name] = nil
		default:
			text := string(value)
			if value[0] == '"' {
				if err := json.Unmarshal(value, &text); err != nil {
					return fmt.Errorf("reading an entry of the audit log: %w", err)
				}
			}
			fields[prefix+name] = &text
		}
	}
	return nil
}
