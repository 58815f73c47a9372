package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// requireAssignmentConflict checks that err is an AssignmentConflictError with an assignment.
func requireAssignmentConflict(t *testing.T, err error, want roomsensor.AssignmentConflict, id uuid.UUID) {
	t.Helper()
	var conflict *roomsensor.AssignmentConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, want, conflict.Conflict)
	require.Equal(t, id, conflict.Assignment.ID)
}

// TestStartAndEndAssignment checks that the assignments of a device never overlap.
func TestStartAndEndAssignment(t *testing.T) {
	t.Parallel()
	f := setup(t)
	start := func(from time.Time) (roomsensor.Assignment, error) {
		return f.StartAssignment(t.Context(), roomsensor.Assignment{
			DeviceID: f.device, Type: roomsensor.Athlete, Label: "Ana", HomeOrTravel: roomsensor.Travel,
			ExternalRef: new("A-1"), StartedAt: from,
		})
	}
	now := at("2026-05-01T00:00:00Z")
	open, err := start(now)
	require.NoError(t, err)
	_, err = start(now.Add(time.Hour))
	requireAssignmentConflict(t, err, roomsensor.AssignmentOverlaps, open.ID)
	_, err = f.EndAssignment(t.Context(), open.ID, now)
	requireAssignmentConflict(t, err, roomsensor.AssignmentStartedLater, open.ID)
	ended, err := f.EndAssignment(t.Context(), open.ID, now.Add(time.Hour))
	require.NoError(t, err)
	require.True(t, ended.EndedAt.Equal(now.Add(time.Hour)))
	_, err = f.EndAssignment(t.Context(), open.ID, now.Add(2*time.Hour))
	requireAssignmentConflict(t, err, roomsensor.AssignmentEnded, open.ID)
	_, err = start(now.Add(30 * time.Minute))
	requireAssignmentConflict(t, err, roomsensor.AssignmentOverlaps, open.ID)
	_, err = start(now.Add(-time.Hour))
	requireAssignmentConflict(t, err, roomsensor.AssignmentOverlaps, open.ID)
	_, err = start(now.Add(time.Hour))
	require.NoError(t, err)

	_, err = f.EndAssignment(t.Context(), uuid.New(), now)
	requireMissing(t, err, roomsensor.KindAssignment)
	_, err = f.DeviceAssignments(t.Context(), uuid.New())
	requireMissing(t, err, roomsensor.KindDevice)
	list, err := f.DeviceAssignments(t.Context(), f.device)
	require.NoError(t, err)
	require.Len(t, list, 2)
}

// TestAssignments reads all pages of a history.
func TestAssignments(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for day := 1; day <= 5; day++ {
		a, err := f.StartAssignment(t.Context(), roomsensor.Assignment{
			DeviceID: f.device, Type: roomsensor.Place, Label: fmt.Sprint(day), HomeOrTravel: roomsensor.Home,
			StartedAt: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC),
		})
		require.NoError(t, err)
		if day < 5 {
			_, err = f.EndAssignment(t.Context(), a.ID, a.StartedAt.Add(time.Hour))
			require.NoError(t, err)
		}
	}
	var labels []string
	var after *roomsensor.AssignmentPosition
	for {
		page, err := f.Assignments(t.Context(), f.team, f.device, roomsensor.AssignmentQuery{After: after, Limit: 2})
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, a := range page {
			labels = append(labels, a.Label)
		}
		last := page[len(page)-1]
		after = &roomsensor.AssignmentPosition{StartedAt: last.StartedAt, ID: last.ID}
	}
	require.Equal(t, []string{"5", "4", "3", "2", "1"}, labels)

	d, err := f.Device(t.Context(), f.team, f.device)
	require.NoError(t, err)
	require.Equal(t, "5", d.ActiveAssignment.Label)
	one, err := f.Assignment(t.Context(), f.team, d.ActiveAssignment.ID)
	require.NoError(t, err)
	require.Equal(t, f.device, one.DeviceID)
	require.Nil(t, one.EndedAt)
	_, err = f.Assignment(t.Context(), uuid.New(), one.ID)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	_, err = f.Device(t.Context(), uuid.New(), f.device)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
}
