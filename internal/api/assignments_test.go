package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/test/conformance"
)

func TestAssignmentFields(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.fillDevice(t)
	conformance.Covers(t, "decision 15 a", "decision 15 b 1", "decision 15 c")
	f.exec(t, `DELETE FROM assignments WHERE id = $1`, testID(0xa5, 1))
	f.exec(t, `UPDATE assignments SET (type, home_or_travel, ended_at, external_ref) = ('place', 'travel', '2026-11-20 10:00:01Z', '')`)
	require.Equal(t, `{"data":[{"assignment_id":"`+testID(0xa5, 2).String()+`","type":"place","label":"Ana","home_or_travel":"travel",`+
		`"started_at":"2026-11-20T09:00:00Z","ended_at":"2026-11-20T10:00:01Z","external_ref":""}],"next_cursor":null}`,
		string(f.get(t, assignmentsPath).body))
	for _, set := range []string{
		"type = 'room'", "type = 'Place'", "home_or_travel = 'away'", "home_or_travel = ''", "type = NULL",
		"home_or_travel = NULL",
	} {
		_, err := f.sql.Exec(t.Context(), `UPDATE assignments SET `+set)
		require.ErrorContains(t, err, "constraint")
	}
}

// An assignment is absent, open, then closed.
func TestAssignmentStates(t *testing.T) {
	t.Parallel()
	f := setup(t)
	requireActive := func(want string) {
		t.Helper()
		for _, body := range f.deviceBodies(t) {
			require.Contains(t, body, `"active_assignment":`+want)
		}
	}
	id := testID(0xa5, 2)
	conformance.Covers(t, "spec 3, assignment, available", "spec 2, device, active_assignment, available", "decision 14 c")
	requireGolden(t, "empty.json.golden", f.get(t, assignmentsPath).body)
	requireActive("null")
	f.addAssignment(t, deviceID, testID(0xa5, 1), start.Add(-day), new(start.Add(-2*time.Hour)))
	requireActive("null")

	conformance.Covers(t, "spec 3, assignment, open", "spec 2, device, active_assignment, open", "spec 2, assignment, ended_at", "decision 15 b 2", "decision 15 c")
	f.addAssignment(t, deviceID, id, start.Add(-time.Hour), nil)
	for _, ref := range []string{"null", `"crm-7"`} {
		requireActive(`{"assignment_id":"` + id.String() + `","label":"Room 12","started_at":"2026-11-20T09:00:00Z","external_ref":` + ref + `}`)
		f.exec(t, `UPDATE assignments SET external_ref = 'crm-7'`)
	}
	history := f.items(t, assignmentsPath)
	require.Equal(t, id.String(), history[0]["assignment_id"])
	require.Nil(t, history[0]["ended_at"])

	conformance.Covers(t, "spec 3, assignment, closed")
	f.exec(t, `UPDATE assignments SET ended_at = $1 WHERE ended_at IS NULL`, start)
	requireActive("null")
	history = f.items(t, assignmentsPath)
	require.Len(t, history, 2)
	require.Equal(t, "2026-11-20T10:00:00Z", history[0]["ended_at"])
}
