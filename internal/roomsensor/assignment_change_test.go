package roomsensor_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// assigned returns an open assignment of an athlete.
func assigned(t *testing.T, device byte, label, from string) roomsensor.Assignment {
	t.Helper()
	return roomsensor.Assignment{
		ID: uuid.New(), DeviceID: uuid.UUID{device}, Type: roomsensor.Athlete, Label: label, StartedAt: instant(t, from),
	}
}

// TestElsewhere checks which open assignments of the same person a change names.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	open := func(device byte, label string) roomsensor.DeviceAssignment {
		return roomsensor.DeviceAssignment{Assignment: assigned(t, device, label, "2026-11-10T12:00:00Z")}
	}
	maya, other, ana := open(1, "Maya"), open(2, "MAYA "), open(3, "Ana")
	athletes := []roomsensor.DeviceAssignment{maya, other, ana}
	elsewhere := func(c roomsensor.AssignmentChange) (ids []uuid.UUID) {
		for _, a := range c.Elsewhere(athletes) {
			ids = append(ids, a.ID)
		}
		return ids
	}
	next := assigned(t, 4, "maya", "2026-11-20T12:00:00Z")
	require.Equal(t, []uuid.UUID{maya.ID, other.ID}, elsewhere(roomsensor.StartAssignment(next)))
	require.Equal(t, []uuid.UUID{other.ID}, elsewhere(roomsensor.TransferAssignment(maya.ID, next)))
	place := next
	place.Type = roomsensor.Place
	require.Empty(t, elsewhere(roomsensor.StartAssignment(place)))
	numbered := next
	numbered.ExternalRef = new("crm-7")
	require.Empty(t, elsewhere(roomsensor.StartAssignment(numbered)))
	edit := func(stored roomsensor.DeviceAssignment, next roomsensor.Assignment) roomsensor.AssignmentChange {
		return roomsensor.AssignmentChange{Edit: &roomsensor.AssignmentEdit{ID: stored.ID, Next: &next}}
	}
	require.Equal(t, []uuid.UUID{maya.ID, other.ID}, elsewhere(edit(ana, next)))
	require.Equal(t, []uuid.UUID{other.ID}, elsewhere(edit(maya, next)))
	next.EndedAt = new(instant(t, "2026-11-21T12:00:00Z"))
	require.Empty(t, elsewhere(edit(ana, next)))
	require.Empty(t, elsewhere(roomsensor.AssignmentChange{Edit: &roomsensor.AssignmentEdit{ID: ana.ID}}))
}

// TestAssignmentVersion checks that a version changes with each field.
func TestAssignmentVersion(t *testing.T) {
	t.Parallel()
	a := assigned(t, 1, "Ana", "2026-11-10T12:00:00Z")
	same := a
	same.StartedAt = a.StartedAt.In(time.FixedZone("x", 3600))
	require.Equal(t, a.Version(), same.Version())
	seen := map[string]bool{a.Version(): true}
	for _, change := range []func(*roomsensor.Assignment){
		func(a *roomsensor.Assignment) { a.Label = "ana" }, func(a *roomsensor.Assignment) { a.Type = roomsensor.Place },
		func(a *roomsensor.Assignment) { a.HomeOrTravel = roomsensor.Travel },
		func(a *roomsensor.Assignment) { a.ExternalRef = new("") },
		func(a *roomsensor.Assignment) { a.StartedAt = a.StartedAt.Add(time.Microsecond) },
		func(a *roomsensor.Assignment) { a.EndedAt = new(a.StartedAt.Add(time.Hour)) },
		func(a *roomsensor.Assignment) { a.ID = uuid.New() },
	} {
		changed := a
		change(&changed)
		require.False(t, seen[changed.Version()])
		seen[changed.Version()] = true
	}
}

func TestKnownRef(t *testing.T) {
	t.Parallel()
	known := []roomsensor.AthleteName{
		{Label: "Ana"},
		{Label: "ana", ExternalRef: new("1")},
		{Label: "ANA ", ExternalRef: new("1")},
		{Label: "Bea"},
		{Label: "Cy", ExternalRef: new("2")},
		{Label: "Cy", ExternalRef: new("3")},
	}
	for label, want := range map[string]string{"Ana": "1", "aNA": "1", "Bea": "", "Cy": "", "Dan": ""} {
		ref, ok := roomsensor.KnownRef(known, label)
		require.Equal(t, want, ref, label)
		require.Equal(t, want != "", ok, label)
	}
}
