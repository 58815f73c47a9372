package roomsensor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// AssignmentChange changes assignments of a team, and devices with them. All of it happens, in the order of the fields,
// or nothing.
type AssignmentChange struct {
	Devices []DeviceEdit
	End     []AssignmentEnd
	Edit    *AssignmentEdit
	Start   []Assignment // open ones; their ID is ignored
	Reason  string       // for the audit log; may be empty
}

// DeviceEdit changes the name or the tags of a device.
type DeviceEdit struct {
	Seen  Device // on which the edit is based
	Patch DevicePatch
}

// ErrDeviceChanged means that a device has another name or other tags than when it was seen.
var ErrDeviceChanged = errors.New("the device changed meanwhile")

// AssignmentEnd ends an open assignment.
type AssignmentEnd struct {
	ID uuid.UUID
	At time.Time
}

// AssignmentEdit replaces or deletes an assignment, which may have ended.
type AssignmentEdit struct {
	ID   uuid.UUID
	Seen string      // Version of the assignment on which the edit is based; empty for any
	Next *Assignment // its ID and DeviceID are ignored; nil deletes the assignment
}

// StartAssignment returns the change that starts an assignment.
func StartAssignment(a Assignment) AssignmentChange { return AssignmentChange{Start: []Assignment{a}} }

// EndAssignment returns the change that ends an assignment.
func EndAssignment(id uuid.UUID, at time.Time) AssignmentChange {
	return AssignmentChange{End: []AssignmentEnd{{id, at}}}
}

// TransferAssignment returns the change that ends an assignment and starts another one, which should be of the same
// device, at the same instant.
func TransferAssignment(id uuid.UUID, next Assignment) AssignmentChange {
	return AssignmentChange{End: []AssignmentEnd{{id, next.StartedAt}}, Start: []Assignment{next}}
}

// Elsewhere lists the open assignments that name a person for whom the change opens another one, and that it leaves
// open. athletes are all open assignments of the team's athletes.
func (c *AssignmentChange) Elsewhere(athletes []DeviceAssignment) (elsewhere []DeviceAssignment) {
	opened := slices.Clone(c.Start)
	ended := map[uuid.UUID]bool{}
	for _, end := range c.End {
		ended[end.ID] = true
	}
	if c.Edit != nil && c.Edit.Next != nil && c.Edit.Next.EndedAt == nil {
		opened = append(opened, *c.Edit.Next)
		ended[c.Edit.ID] = true
	}
	for i := range opened {
		person, ok := opened[i].Person()
		for j := range athletes {
			if other := &athletes[j]; ok && other.IsPerson(person) && !ended[other.ID] {
				elsewhere = append(elsewhere, *other)
			}
		}
	}
	return elsewhere
}

// Move moves a person to another device.
type Move struct {
	From     Assignment  // open assignment of the person
	To       uuid.UUID   // device
	At       time.Time   // when the old assignments end and the new ones start
	Occupant *Assignment // open assignment of the device To; nil without one
	Swap     bool        // whether the occupant moves to the device of From
	OldRoom  string      // label with which the device of From starts as a place; empty for none, and for a swap
}

// Change returns the change that moves the person.
func (m *Move) Change() AssignmentChange {
	started := func(a Assignment, device uuid.UUID) Assignment {
		a.DeviceID, a.StartedAt, a.EndedAt = device, m.At, nil
		return a
	}
	change := TransferAssignment(m.From.ID, started(m.From, m.To))
	if m.Occupant != nil {
		change.End = append(change.End, AssignmentEnd{m.Occupant.ID, m.At})
	}
	switch {
	case m.Occupant != nil && m.Swap:
		change.Start = append(change.Start, started(*m.Occupant, m.From.DeviceID))
	case m.OldRoom != "":
		place := Assignment{Type: Place, Label: m.OldRoom, HomeOrTravel: m.From.HomeOrTravel}
		change.Start = append(change.Start, started(place, m.From.DeviceID))
	}
	return change
}

// Version returns a text that is the same as long as nobody changes the assignment.
func (a *Assignment) Version() string {
	hash := sha256.New()
	ref, ended := "", int64(0)
	if a.ExternalRef != nil {
		ref = "=" + *a.ExternalRef
	}
	if a.EndedAt != nil {
		ended = a.EndedAt.UnixMicro()
	}
	_, _ = fmt.Fprintf(hash, "%s %q %q %q %q %d %d",
		a.ID, a.Type, a.Label, a.HomeOrTravel, ref, a.StartedAt.UnixMicro(), ended)
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// AssignmentOutcome is what an AssignmentChange changed.
type AssignmentOutcome struct {
	Before []Assignment // those that ended, changed or were deleted, as they were
	After  []Assignment // those that ended, changed or started, as they are now, in the order of the change
}

// AthleteName is how assignments name a person.
type AthleteName struct {
	Label       string
	ExternalRef *string
}

// KnownRef returns the external_ref of the athletes with a label. ok is false if there is none, or more than one.
func KnownRef(athletes []AthleteName, label string) (ref string, ok bool) {
	for _, a := range athletes {
		switch {
		case a.ExternalRef == nil || FoldLabel(a.Label) != FoldLabel(label):
		case ok && *a.ExternalRef != ref:
			return "", false
		default:
			ref, ok = *a.ExternalRef, true
		}
	}
	return ref, ok
}
