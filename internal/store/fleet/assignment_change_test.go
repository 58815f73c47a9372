package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// change changes assignments of the team.
func (f *fixture) change(t *testing.T, c roomsensor.AssignmentChange) (roomsensor.AssignmentOutcome, error) {
	t.Helper()
	return f.ChangeAssignments(t.Context(), f.TeamID, c, nil)
}

// mustChange changes assignments of the team and returns them as they are then.
func (f *fixture) mustChange(t *testing.T, c roomsensor.AssignmentChange) []roomsensor.Assignment {
	t.Helper()
	done, err := f.change(t, c)
	require.NoError(t, err)
	return done.After
}

// start starts an assignment of an athlete with a label.
func (f *fixture) start(t *testing.T, device uuid.UUID, label string, at time.Time) roomsensor.Assignment {
	t.Helper()
	return f.mustChange(t, roomsensor.StartAssignment(roomsensor.Assignment{
		DeviceID: device, Type: roomsensor.Athlete, Label: label, HomeOrTravel: roomsensor.Home, StartedAt: at,
	}))[0]
}

// requireConflict checks the conflict of a change, and that it names the assignment with the label Anna.
func (f *fixture) requireConflict(t *testing.T, c roomsensor.AssignmentChange, conflict roomsensor.AssignmentConflict) {
	t.Helper()
	_, err := f.change(t, c)
	var refused *roomsensor.AssignmentConflictError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, conflict, refused.Conflict)
	require.Equal(t, "Anna", refused.Assignment.Label)
}

// edit returns the change that replaces an assignment by another one.
func edit(stored, next roomsensor.Assignment) roomsensor.AssignmentChange {
	return roomsensor.AssignmentChange{Edit: &roomsensor.AssignmentEdit{ID: stored.ID, Seen: stored.Version(), Next: &next}}
}

// stored returns the assignments of a device, the newest first.
func (f *fixture) stored(t *testing.T, device uuid.UUID) []roomsensor.Assignment {
	t.Helper()
	all, err := f.DeviceAssignments(t.Context(), device)
	require.NoError(t, err)
	return all
}

func TestTransferAssignment(t *testing.T) {
	t.Parallel()
	f := setup(t)
	began := at("2026-01-01T00:00:00Z")
	first := f.start(t, f.DeviceID, "Anna", began)
	next := roomsensor.Assignment{
		DeviceID: f.DeviceID, Type: roomsensor.Athlete, Label: "Bea", HomeOrTravel: roomsensor.Travel,
		ExternalRef: new("crm-7"), StartedAt: began.Add(time.Hour),
	}
	early := next
	early.StartedAt = began
	f.requireConflict(t, roomsensor.TransferAssignment(first.ID, early), roomsensor.AssignmentStartedLater)

	done, err := f.change(t, roomsensor.TransferAssignment(first.ID, next))
	require.NoError(t, err)
	require.Equal(t, []roomsensor.Assignment{first}, done.Before)
	ended, started := done.After[0], done.After[1]
	require.Equal(t, first.ID, ended.ID)
	require.Equal(t, next.StartedAt, *ended.EndedAt)
	next.ID = started.ID
	require.Equal(t, next, started)

	f.requireConflict(t, roomsensor.TransferAssignment(first.ID, next), roomsensor.AssignmentEnded)
	_, err = f.change(t, roomsensor.TransferAssignment(uuid.New(), next))
	require.ErrorIs(t, err, roomsensor.ErrNotFound)

	// A failure after the end changes nothing: the label violates a constraint.
	f.Exec(t, `ALTER TABLE assignments ADD CHECK (label <> 'Carl')`)
	failing := next
	failing.Label, failing.StartedAt = "Carl", began.Add(2*time.Hour)
	_, err = f.change(t, roomsensor.TransferAssignment(started.ID, failing))
	require.Error(t, err)
	require.Nil(t, f.stored(t, f.DeviceID)[0].EndedAt)
}

// TestEditAssignmentTwice checks that the second of two edits of the same state changes nothing, also at the same time.
func TestEditAssignmentTwice(t *testing.T) {
	t.Parallel()
	f := setup(t)
	anna := f.start(t, f.DeviceID, "Anna", at("2026-01-01T00:00:00Z"))
	results := make([]error, 6)
	var people errgroup.Group
	for i := range results {
		next := anna
		next.Label, next.StartedAt = "Anna", anna.StartedAt.Add(time.Duration(i+1)*time.Minute)
		people.Go(func() error {
			_, results[i] = f.ChangeAssignments(t.Context(), f.TeamID, edit(anna, next), nil)
			return nil
		})
	}
	require.NoError(t, people.Wait())
	saved := 0
	for _, err := range results {
		if err == nil {
			saved++
			continue
		}
		var refused *roomsensor.AssignmentConflictError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, roomsensor.AssignmentChanged, refused.Conflict)
		require.Equal(t, f.stored(t, f.DeviceID)[0], refused.Assignment)
	}
	require.Equal(t, 1, saved)
}

// TestMovePersonBothWays checks that moves between the same rooms in both directions do not block each other.
func TestMovePersonBothWays(t *testing.T) {
	t.Parallel()
	f := setup(t)
	now := at("2026-01-01T00:00:00Z")
	rooms := []uuid.UUID{f.DeviceID, f.NewDevice(t, "dev:2")}
	f.start(t, rooms[0], "Anna", now)
	f.start(t, rooms[1], "Bea", now)
	// Another process has its own limits: only the database orders the two.
	other := open(t, f.URL, store.Operator)
	for i := range 20 {
		here, there := f.stored(t, rooms[0])[0], f.stored(t, rooms[1])[0]
		when := now.Add(time.Duration(i+1) * time.Hour)
		to := roomsensor.Move{From: here, To: rooms[1], At: when, Occupant: &there, Swap: true}
		fro := roomsensor.Move{From: there, To: rooms[0], At: when, Occupant: &here, Swap: true}
		var both errgroup.Group
		var errs [2]error
		both.Go(func() error { _, errs[0] = f.change(t, to.Change()); return nil })
		both.Go(func() error {
			_, errs[1] = other.ChangeAssignments(t.Context(), f.TeamID, fro.Change(), nil)
			return nil
		})
		require.NoError(t, both.Wait())
		refused, ok := errors.AsType[*roomsensor.AssignmentConflictError](errors.Join(errs[:]...))
		require.True(t, ok, "%v", errs)
		require.Equal(t, roomsensor.AssignmentEnded, refused.Conflict)
		require.True(t, errs[0] == nil || errs[1] == nil, "one of them happens: %v", errs)
	}
}

// TestChangeAssignmentsAccept checks that nothing is stored if accept refuses the outcome, and the entries of the audit
// log if it does not.
func TestChangeAssignmentsAccept(t *testing.T) {
	t.Parallel()
	f := setup(t)
	anna := f.start(t, f.DeviceID, "Anna", at("2026-01-01T00:00:00Z"))
	next := anna
	next.Label, next.EndedAt = "Anna Ruiz", new(anna.StartedAt.Add(time.Hour))
	change := edit(anna, next)
	change.Reason = "misspelt"
	refusal := errors.New("refused")
	var seen roomsensor.AssignmentOutcome
	_, err := f.ChangeAssignments(t.Context(), f.TeamID, change, func(outcome roomsensor.AssignmentOutcome) error {
		seen = outcome
		return refusal
	})
	require.ErrorIs(t, err, refusal)
	require.Equal(t, []roomsensor.Assignment{anna}, f.stored(t, f.DeviceID))
	done, err := f.change(t, change)
	require.NoError(t, err)
	require.Equal(t, seen, done, "what was shown is what happens")

	change.Edit = &roomsensor.AssignmentEdit{ID: anna.ID}
	f.mustChange(t, change)
	f.mustChange(t, roomsensor.StartAssignment(anna))
	entries, err := f.TeamAudit(t.Context(), f.TeamID, roomsensor.AuditQuery{Object: anna.ID.String(), Limit: 9})
	require.NoError(t, err)
	require.Equal(t, []string{"misspelt", "misspelt", ""}, []string{entries[0].Reason, entries[1].Reason, entries[2].Reason})
	require.Equal(t, roomsensor.AuditDelete, entries[0].Action)
	require.JSONEq(t, `{"label":"Anna","ended_at":null}`, string(entries[1].Before))
	require.JSONEq(t, `{"label":"Anna Ruiz","ended_at":"2026-01-01T01:00:00Z"}`, string(entries[1].After))
	var deleted map[string]any
	require.NoError(t, json.Unmarshal(entries[0].Before, &deleted))
	require.Equal(t, "Anna Ruiz", deleted["label"])
}

// TestAssignmentsOfOtherTeam checks that the ids of another team are like unknown ones.
func TestAssignmentsOfOtherTeam(t *testing.T) {
	t.Parallel()
	f := setup(t)
	now := time.Now()
	a := f.start(t, f.DeviceID, "Anna", now.Add(-time.Hour))
	other, err := f.CreateTeam(t.Context(), "Other")
	require.NoError(t, err)
	device, err := f.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: other.ID, HardwareID: "dev:9"}, now)
	require.NoError(t, err)
	own := a
	own.DeviceID, own.StartedAt = device.ID, now
	move := roomsensor.Move{From: a, To: device.ID, At: now}
	for name, change := range map[string]roomsensor.AssignmentChange{
		"start":    roomsensor.StartAssignment(roomsensor.Assignment{DeviceID: f.DeviceID, StartedAt: now}),
		"end":      roomsensor.EndAssignment(a.ID, now),
		"transfer": roomsensor.TransferAssignment(a.ID, own),
		"edit":     edit(a, a),
		"delete":   {Edit: &roomsensor.AssignmentEdit{ID: a.ID}},
		"move":     move.Change(),
	} {
		_, err := f.ChangeAssignments(context.WithoutCancel(t.Context()), other.ID, change, nil)
		require.ErrorIs(t, err, roomsensor.ErrNotFound, name)
	}
	_, err = f.change(t, move.Change())
	require.ErrorIs(t, err, roomsensor.ErrNotFound, "a device of another team")
	require.Equal(t, []roomsensor.Assignment{a}, f.stored(t, f.DeviceID))

	timeline, err := f.Timeline(t.Context(), other.ID, roomsensor.TimelineQuery{Window: roomsensor.Window{To: now}, Limit: 10})
	require.NoError(t, err)
	require.Len(t, timeline.Devices, 1)
	for _, team := range []uuid.UUID{f.TeamID, other.ID} {
		athletes, err := f.OpenAthletes(t.Context(), team, 10)
		require.NoError(t, err)
		known, err := f.KnownAthletes(t.Context(), team, 10)
		require.NoError(t, err)
		require.Equal(t, team == f.TeamID, len(athletes) == 1)
		require.Equal(t, team == f.TeamID, len(known) == 1)
	}
}

// TestKnownAthletes checks that each name of an athlete is listed once, those that started last first.
func TestKnownAthletes(t *testing.T) {
	t.Parallel()
	f := setup(t)
	day := at("2026-01-01T00:00:00Z")
	f.Exec(t, `INSERT INTO assignments (device_id, type, label, external_ref, started_at, ended_at) VALUES
		($1, 'athlete', 'Anna', NULL, $2, $2::timestamptz + interval '1 h'),
		($1, 'athlete', 'Bea', 'crm-2', $2::timestamptz + interval '1 h', $2::timestamptz + interval '2 h'),
		($1, 'place', 'Room', NULL, $2::timestamptz + interval '2 h', $2::timestamptz + interval '3 h'),
		($1, 'athlete', 'Anna', NULL, $2::timestamptz + interval '3 h', NULL)`, f.DeviceID, day)
	known, err := f.KnownAthletes(t.Context(), f.TeamID, 10)
	require.NoError(t, err)
	require.Equal(t, []roomsensor.AthleteName{{Label: "Anna"}, {Label: "Bea", ExternalRef: new("crm-2")}}, known)
	known, err = f.KnownAthletes(t.Context(), f.TeamID, 1)
	require.NoError(t, err)
	require.Len(t, known, 1)
	athletes, err := f.OpenAthletes(t.Context(), f.TeamID, 10)
	require.NoError(t, err)
	require.Len(t, athletes, 1)
	require.Equal(t, "dev:1", athletes[0].HardwareID)
}

// TestChangeDevices checks that a change edits devices together with their assignments, or nothing.
func TestChangeDevices(t *testing.T) {
	t.Parallel()
	f := setup(t)
	seen, err := f.Device(t.Context(), f.TeamID, f.DeviceID)
	require.NoError(t, err)
	anna := f.start(t, f.DeviceID, "Anna", at("2026-01-01T00:00:00Z"))
	patch := rename("Dorm 1")
	patch.Metadata.Values = map[string]*string{"floor": new("2")}
	change := roomsensor.EndAssignment(anna.ID, anna.StartedAt)
	change.Devices = []roomsensor.DeviceEdit{{Seen: seen, Patch: patch}}
	f.requireConflict(t, change, roomsensor.AssignmentStartedLater)
	kept, err := f.Device(t.Context(), f.TeamID, f.DeviceID)
	require.NoError(t, err)
	require.True(t, kept.SameDescription(&seen), "nothing is changed")

	change.End[0].At = anna.StartedAt.Add(time.Hour)
	f.mustChange(t, change)
	changed, err := f.Device(t.Context(), f.TeamID, f.DeviceID)
	require.NoError(t, err)
	require.Equal(t, "Dorm 1", *changed.DisplayName)
	require.Equal(t, "2", changed.Metadata["floor"])
	require.Nil(t, changed.ActiveAssignment)

	again := roomsensor.AssignmentChange{Devices: change.Devices}
	_, err = f.change(t, again)
	require.ErrorIs(t, err, roomsensor.ErrDeviceChanged)
	other, err := f.CreateTeam(t.Context(), "Other")
	require.NoError(t, err)
	_, err = f.ChangeAssignments(t.Context(), other.ID, again, nil)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
}
