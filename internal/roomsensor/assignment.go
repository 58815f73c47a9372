package roomsensor

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// AssignmentType is what an assignment tracks (spec 2, Assignment).
type AssignmentType string

// HomeOrTravel is where the device was set up (decision 15).
type HomeOrTravel string

// The values of decision 15.
const (
	Athlete AssignmentType = "athlete"
	Place   AssignmentType = "place"

	Home   HomeOrTravel = "home"
	Travel HomeOrTravel = "travel"
)

// Assignment is a continuous interval in which a device tracks one athlete or place. The assignments of a device never
// overlap.
type Assignment struct {
	ID           uuid.UUID
	DeviceID     uuid.UUID
	Type         AssignmentType
	Label        string
	HomeOrTravel HomeOrTravel
	StartedAt    time.Time
	EndedAt      *time.Time // nil while the assignment is open
	ExternalRef  *string
}

// Window returns [started_at, ended_at), which ends at Forever while the assignment is open (spec 4, readings, rule 2).
func (a *Assignment) Window() Window {
	if a.EndedAt == nil {
		return Window{a.StartedAt, Forever}
	}
	return Window{a.StartedAt, *a.EndedAt}
}

// DeviceAssignment is an assignment with its device.
type DeviceAssignment struct {
	Assignment

	HardwareID  string
	DisplayName *string
}

// AssignmentPosition identifies the last row of a page of assignments.
type AssignmentPosition struct {
	StartedAt time.Time
	ID        uuid.UUID
}

// AssignmentQuery selects a page of a device's assignments, by started_at descending, then assignment_id ascending
// (decision 10).
type AssignmentQuery struct {
	After *AssignmentPosition // nil on the first page
	Limit int
}

// AssignmentWindows is the rule of GET /assignments. Without a time parameter, it lists what is open (A18.1).
var AssignmentWindows = WindowRule{Default: day, Max: 3660 * day}

// TeamAssignmentQuery selects a page of the assignments of a team that overlap a window (A18.1).
type TeamAssignmentQuery struct {
	AssignmentQuery

	Window             Window
	Type               *AssignmentType   // nil selects both
	Label, ExternalRef *string           // that an assignment must have exactly; nil selects all
	Metadata           map[string]string // tags that its device must have
}

// AssignmentConflict is why an assignment cannot be started, ended or edited.
type AssignmentConflict string

// The conflicts of assignments.
const (
	AssignmentOverlaps     AssignmentConflict = "overlaps"      // the device has this assignment at the same time
	AssignmentEnded        AssignmentConflict = "ended"         // it has ended already
	AssignmentStartedLater AssignmentConflict = "started later" // it started at the new end or later
	AssignmentChanged      AssignmentConflict = "changed"       // it is not any more what the person saw
)

// AssignmentConflictError means that an assignment cannot be started, ended or edited because of the stored Assignment.
type AssignmentConflictError struct {
	Conflict   AssignmentConflict
	Assignment Assignment
}

func (e *AssignmentConflictError) Error() string {
	return fmt.Sprintf("assignment %s of device %s: %s", e.Assignment.ID, e.Assignment.DeviceID, e.Conflict)
}

// EffectiveTime returns the time at which a change of the units or assignments of a device takes effect: *at, or now if
// at is nil. It refuses a time after now, and one before MeasuredFrom, which is a typing error; like that of CheckName,
// the error is a sentence without a subject.
func EffectiveTime(at *time.Time, now time.Time) (time.Time, error) {
	now = now.UTC().Truncate(time.Microsecond)
	switch {
	case at == nil:
		return now, nil
	case at.After(now):
		return time.Time{}, ruleError("is in the future. Give a time up to now, or none for now")
	case at.Before(MeasuredFrom):
		return time.Time{}, ruleError("is before 2015, when there were no readings. Give a later time, or none for now")
	}
	return *at, nil
}

// TimelineQuery selects a page of a team's devices, by name, with their assignments in a window.
type TimelineQuery struct {
	Window   Window
	Metadata map[string]string // a device must have all of these tags
	Search   string            // part of the name, hardware id or the label of an assignment; empty matches all
	Limit    int               // devices
	Skip     int               // devices of the pages before
}

// MaxTimelineAssignments bounds the assignments of one device in a timeline, of which it has the newest: nobody can
// distinguish more in a row.
const MaxTimelineAssignments = 50

// TimelineDevice is a device with its assignments that overlap a window or are open, the oldest first.
type TimelineDevice struct {
	ID          uuid.UUID
	HardwareID  string
	DisplayName *string
	Assignments []Assignment
}

// Open returns the open assignment of the device, or nil.
func (d *TimelineDevice) Open() *Assignment {
	if n := len(d.Assignments); n > 0 && d.Assignments[n-1].EndedAt == nil {
		return &d.Assignments[n-1]
	}
	return nil
}

// Timeline is a page of devices.
type Timeline struct {
	Devices []TimelineDevice
	Total   int // devices of all pages
}
