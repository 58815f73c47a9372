package roomsensor

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// The limits of notes.
const (
	// MaxNotes is how many notes a team may have.
	MaxNotes = 10_000
	// MaxNote is the length of a note in characters.
	MaxNote = 500
)

// Note is what somebody wrote about a device or a person at a time.
type Note struct {
	ID           uuid.UUID
	DeviceID     uuid.UUID   // the device, or that of the assignment
	AssignmentID *uuid.UUID  // an assignment of the person; nil for a note about the device
	Assignment   *Assignment // only its Type, Label and ExternalRef; nil for a note about the device
	At           time.Time
	Text         string
	Author       string // empty if the account was deleted
}

// Person returns the person whom a note is about; ok is false for a note about a device.
func (n *Note) Person() (key PersonKey, ok bool) {
	if n.Assignment == nil {
		return PersonKey{}, false
	}
	return n.Assignment.Person()
}

// IsOf reports whether a note belongs to an assignment: to its person or else its device, at a time of the assignment.
func (n *Note) IsOf(a *Assignment) bool {
	if key, ok := n.Person(); ok && !a.IsPerson(key) || !ok && a.DeviceID != n.DeviceID {
		return false
	}
	return a.Window().Contains(n.At)
}

// CheckNote checks the text of a note. Like CheckName, its error is a sentence without a subject.
func CheckNote(text string) error {
	n := utf8.RuneCountInString(text)
	switch {
	case n == 0:
		return ruleError("must not be empty")
	case n > MaxNote:
		return ruleError(fmt.Sprintf("has %d characters; at most %d are allowed", n, MaxNote))
	}
	return nil
}

// TooManyNotes returns the error of a team that has MaxNotes.
func TooManyNotes() *Error {
	return Invalid("text",
		fmt.Sprintf("The team has %d notes, the most that it may have. Delete old ones first.", MaxNotes))
}
