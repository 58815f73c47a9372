package airquality

import (
	"slices"
	"time"

	"roomsensor/internal/roomsensor"
)

// OldStart is the age from which a start is taken for a typing error, such as that of a year.
const OldStart = 30 * 24 * time.Hour

// AssignmentPreview is what a person should see before a change of assignments is saved.
type AssignmentPreview struct {
	roomsensor.AssignmentOutcome

	Nights    []NightChange
	OldStarts []roomsensor.Assignment       // that now start more than OldStart before now
	Elsewhere []roomsensor.DeviceAssignment // see AssignmentChange.Elsewhere
}

// NewAssignmentPreview returns the preview of an outcome in a team with some hours of the night.
func NewAssignmentPreview(
	outcome roomsensor.AssignmentOutcome, elsewhere []roomsensor.DeviceAssignment,
	hours NightHours, zone *time.Location, now time.Time,
) *AssignmentPreview {
	p := &AssignmentPreview{
		AssignmentOutcome: outcome, Elsewhere: elsewhere,
		Nights: NightChanges(outcome.Before, outcome.After, hours, zone, now),
	}
	for i := range outcome.After {
		a := &outcome.After[i]
		kept := slices.ContainsFunc(outcome.Before, func(before roomsensor.Assignment) bool {
			return before.ID == a.ID && before.StartedAt.Equal(a.StartedAt)
		})
		if !kept && a.StartedAt.Before(now.Add(-OldStart)) {
			p.OldStarts = append(p.OldStarts, *a)
		}
	}
	return p
}
