package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// TestAddNoteLocks checks that a note about a person locks the device before the assignment, as the changes of
// assignments do: otherwise, the two could wait for each other.
func TestAddNoteLocks(t *testing.T) {
	t.Parallel()
	f := setup(t)
	a := f.start(t, f.DeviceID, "Ada", time.Now())
	f.Exec(t, `UPDATE assignments SET type = 'athlete'`)
	change, err := f.SQL.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = change.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = change.Exec(t.Context(), `SELECT FROM devices WHERE id = $1 FOR UPDATE`, f.DeviceID)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		done <- f.AddNote(t.Context(), f.TeamID, &roomsensor.Note{AssignmentID: &a.ID, At: time.Now(), Text: "x"})
	}()
	require.Eventually(t, func() bool {
		return f.Number(t, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
	}, patience, 10*time.Millisecond)
	_, err = change.Exec(t.Context(), `SELECT FROM assignments WHERE id = $1 FOR NO KEY UPDATE NOWAIT`, a.ID)
	require.NoError(t, err)
	require.NoError(t, change.Commit(t.Context()))
	require.NoError(t, <-done)
	require.Equal(t, 1, f.Number(t, `SELECT count(*) FROM notes`))
}
