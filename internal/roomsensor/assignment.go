package roomsensor

import (
	"time"

	"github.com/google/uuid"
)

// AssignmentType says what an assignment tracked (spec 2, Assignment).
type AssignmentType string

// HomeOrTravel says where the device was set up (decision 15).
type HomeOrTravel string

// The values of decision 15.
const (
	Athlete AssignmentType = "athlete"
	Place   AssignmentType = "place"

	Home   HomeOrTravel = "home"
	Travel HomeOrTravel = "travel"
)

// Assignment is one continuous block of time in which a device tracked an
// athlete or a place; EndedAt is nil while it is open.
type Assignment struct {
	ID           uuid.UUID
	DeviceID     uuid.UUID
	Type         AssignmentType
	Label        string
	HomeOrTravel HomeOrTravel
	StartedAt    time.Time
	EndedAt      *time.Time
	ExternalRef  *string
}

// Window is [started_at, ended_at), without an end while the block is open
// (spec 4, readings, rule 2).
func (a *Assignment) Window() Window {
	if a.EndedAt == nil {
		return Window{a.StartedAt, Forever}
	}
	return Window{a.StartedAt, *a.EndedAt}
}

// AssignmentPosition is where a page of the history ended.
type AssignmentPosition struct {
	StartedAt time.Time
	ID        uuid.UUID
}

// AssignmentQuery selects a page of a device's assignments, by started_at
// descending, then assignment_id ascending (decision 10).
type AssignmentQuery struct {
	After *AssignmentPosition // nil on the first page
	Limit int
}
