package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// start starts an assignment of a device with a label.
func (f *fixture) start(t *testing.T, device uuid.UUID, label string, at time.Time) roomsensor.Assignment {
	t.Helper()
	a, err := f.StartAssignment(t.Context(), f.TeamID, roomsensor.Assignment{
		DeviceID: device, Type: roomsensor.Place, Label: label, HomeOrTravel: roomsensor.Home, StartedAt: at,
	})
	require.NoError(t, err)
	return a
}

// requireConflict checks the conflict of an error, and that it names the assignment with the label Anna.
func requireConflict(t *testing.T, err error, conflict roomsensor.AssignmentConflict) {
	t.Helper()
	var refused *roomsensor.AssignmentConflictError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, conflict, refused.Conflict)
	require.Equal(t, "Anna", refused.Assignment.Label)
}

func TestTransferAssignment(t *testing.T) {
	t.Parallel()
	f := setup(t)
	began := at("2026-01-01T00:00:00Z")
	first := f.start(t, f.DeviceID, "Anna", began)
	next := roomsensor.Assignment{
		Type: roomsensor.Athlete, Label: "Bea", HomeOrTravel: roomsensor.Travel, ExternalRef: new("crm-7"),
		StartedAt: began.Add(time.Hour),
	}

	early := next
	early.StartedAt = began
	_, _, err := f.TransferAssignment(t.Context(), f.TeamID, first.ID, early)
	requireConflict(t, err, roomsensor.AssignmentStartedLater)

	ended, started, err := f.TransferAssignment(t.Context(), f.TeamID, first.ID, next)
	require.NoError(t, err)
	require.Equal(t, first.ID, ended.ID)
	require.Equal(t, next.StartedAt, *ended.EndedAt)
	next.ID, next.DeviceID = started.ID, f.DeviceID
	require.Equal(t, next, started)

	_, _, err = f.TransferAssignment(t.Context(), f.TeamID, first.ID, next)
	requireConflict(t, err, roomsensor.AssignmentEnded)
	_, _, err = f.TransferAssignment(t.Context(), f.TeamID, uuid.New(), next)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)

	// A failure after the end changes nothing: the label violates a constraint.
	f.Exec(t, `ALTER TABLE assignments ADD CHECK (label <> 'Carl')`)
	failing := next
	failing.Label, failing.StartedAt = "Carl", began.Add(2*time.Hour)
	_, _, err = f.TransferAssignment(t.Context(), f.TeamID, started.ID, failing)
	require.Error(t, err)
	again, err := f.Assignment(t.Context(), f.TeamID, started.ID)
	require.NoError(t, err)
	require.Nil(t, again.EndedAt)
}

// TestAssignmentConflicts checks that each refusal names the assignment that is in the way.
func TestAssignmentConflicts(t *testing.T) {
	t.Parallel()
	f := setup(t)
	began := at("2026-01-01T00:00:00Z")
	first := f.start(t, f.DeviceID, "Anna", began)
	overlapping := roomsensor.Assignment{
		DeviceID: f.DeviceID, Type: roomsensor.Place, Label: "x", HomeOrTravel: roomsensor.Home, StartedAt: began.Add(time.Hour),
	}
	_, err := f.StartAssignment(t.Context(), f.TeamID, overlapping)
	requireConflict(t, err, roomsensor.AssignmentOverlaps)
	_, err = f.EndAssignment(t.Context(), f.TeamID, first.ID, began)
	requireConflict(t, err, roomsensor.AssignmentStartedLater)
	_, err = f.EndAssignment(t.Context(), f.TeamID, first.ID, began.Add(2*time.Hour))
	require.NoError(t, err)
	_, err = f.EndAssignment(t.Context(), f.TeamID, first.ID, began.Add(3*time.Hour))
	requireConflict(t, err, roomsensor.AssignmentEnded)
	_, err = f.StartAssignment(t.Context(), f.TeamID, overlapping)
	requireConflict(t, err, roomsensor.AssignmentOverlaps)
}

// TestAssignmentsOfOtherTeam checks that the ids of another team are like unknown ones.
func TestAssignmentsOfOtherTeam(t *testing.T) {
	t.Parallel()
	f := setup(t)
	now := time.Now()
	a := f.start(t, f.DeviceID, "Anna", now.Add(-time.Hour))
	other, err := f.CreateTeam(t.Context(), "Other")
	require.NoError(t, err)
	_, err = f.StartAssignment(t.Context(), other.ID, roomsensor.Assignment{DeviceID: f.DeviceID, StartedAt: now})
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	_, err = f.EndAssignment(t.Context(), other.ID, a.ID, now)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	_, _, err = f.TransferAssignment(t.Context(), other.ID, a.ID, roomsensor.Assignment{StartedAt: now})
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	timeline, err := f.Timeline(t.Context(), other.ID, roomsensor.TimelineQuery{Window: roomsensor.Window{To: now}, Limit: 10})
	require.NoError(t, err)
	require.Empty(t, timeline.Devices)
}

// TestTimeline checks the order, the filters, the pages and the window of a timeline.
func TestTimeline(t *testing.T) {
	t.Parallel()
	f := setup(t)
	day := at("2026-01-10T00:00:00Z")
	names := []string{"attic", "Bedroom", "cellar"}
	devices := make([]uuid.UUID, len(names))
	for i, name := range names {
		d, err := f.CreateDevice(t.Context(), roomsensor.NewDevice{
			TeamID: f.TeamID, HardwareID: fmt.Sprintf("dev:10%d", i), DisplayName: &name,
			Metadata: map[string]string{"floor": fmt.Sprint(i / 2)},
		}, day)
		require.NoError(t, err)
		devices[i] = d.ID
	}
	past := f.start(t, devices[0], "Past", day.Add(-72*time.Hour))
	_, err := f.EndAssignment(t.Context(), f.TeamID, past.ID, day)
	require.NoError(t, err)
	inside := f.start(t, devices[0], "Inside", day)
	_, err = f.EndAssignment(t.Context(), f.TeamID, inside.ID, day.Add(time.Hour))
	require.NoError(t, err)
	f.start(t, devices[0], "Open", day.Add(48*time.Hour))
	window := roomsensor.Window{From: day, To: day.Add(24 * time.Hour)}
	// read returns the hardware ids of a page, each with the labels of its assignments.
	read := func(q roomsensor.TimelineQuery) (page []string, total int) {
		q.Window = window
		timeline, err := f.Timeline(t.Context(), f.TeamID, q)
		require.NoError(t, err)
		for i := range timeline.Devices {
			line := timeline.Devices[i].HardwareID
			for _, a := range timeline.Devices[i].Assignments {
				line += " " + a.Label
			}
			page = append(page, line)
		}
		return page, timeline.Total
	}
	page, total := read(roomsensor.TimelineQuery{Limit: 3})
	require.Equal(t, []string{"dev:100 Inside Open", "dev:101", "dev:102"}, page)
	require.Equal(t, 4, total)
	page, _ = read(roomsensor.TimelineQuery{Limit: 3, Skip: 3})
	require.Equal(t, []string{"dev:1"}, page)
	page, total = read(roomsensor.TimelineQuery{Limit: 3, Metadata: map[string]string{"floor": "1"}})
	require.Equal(t, []string{"dev:102"}, page)
	require.Equal(t, 1, total)
	for search, want := range map[string][]string{
		"BED": {"dev:101"}, "dev:102": {"dev:102"}, "insi": {"dev:100 Inside Open"}, "past": nil, "open": nil, "%": nil, "\x00": nil,
	} {
		page, _ = read(roomsensor.TimelineQuery{Limit: 3, Search: search})
		require.Equal(t, want, page, search)
	}
}
