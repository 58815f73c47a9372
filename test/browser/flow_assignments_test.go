package browser_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// testAssignments transfers the pool to another athlete from yesterday on, and once more. A time in the assignment of
// somebody else is refused, and the page names that assignment.
func (f *flow) testAssignments(t *testing.T) {
	t.Helper()
	p := f.as(t, roomsensor.Editor)
	p.enter(t, "Assignments")
	now := time.Now().In(flowZone).Truncate(time.Minute)
	yesterday := now.Add(-20 * time.Hour)
	p.enter(t, "Transfer Ana Ruiz")
	p.fill(t, "New label", "Lena Fox")
	p.choose(t, "Type", "Athlete")
	p.fillTime(t, "End, and start of the new one (optional)", yesterday)
	p.enter(t, "Transfer")
	require.Contains(t, p.text(t), "Transferred Pool from Ana Ruiz to Lena Fox at "+yesterday.Format("Mon 2 Jan 2006, 15:04")+".")
	require.Equal(t, yesterday.UTC(), f.change(t, f.pool, "Ana Ruiz", "Lena Fox"))

	p.enter(t, "Transfer Lena Fox")
	p.fill(t, "New label", "Kai Brandt")
	p.fillTime(t, "End, and start of the new one (optional)", yesterday.Add(-time.Hour))
	p.enter(t, "Transfer")
	require.Contains(t, p.text(t), "“Lena Fox” started on "+yesterday.Format("Mon 2 Jan 2006, 15:04"))
	p.fillTime(t, "End, and start of the new one (optional)", now.Add(-10*time.Hour))
	p.enter(t, "Transfer")
	require.Contains(t, p.text(t), "Transferred Pool from Lena Fox to Kai Brandt at ", "the form kept what was entered")
	require.Equal(t, now.Add(-10*time.Hour).UTC(), f.change(t, f.pool, "Lena Fox", "Kai Brandt"))

	p.enter(t, "Start an assignment of Sauna")
	p.fill(t, "Label", "Sauna")
	p.fillTime(t, "Start (optional)", now.Add(-3*24*time.Hour))
	p.enter(t, "Start")
	require.Contains(t, p.text(t), "Sauna had the assignment “Old sauna” from ")
	p.fillTime(t, "Start (optional)", now.Add(-time.Hour))
	p.enter(t, "Start")
	require.Contains(t, p.text(t), "Started Sauna on Sauna at ")
	p.enter(t, "End Sauna")
	p.enter(t, "End")
	require.Contains(t, p.text(t), "Ended Sauna on Sauna.")
	p.expand(t, "The same as a table")
	for _, label := range []string{"Ana Ruiz", "Lena Fox", "Kai Brandt", "Old sauna"} {
		require.Contains(t, p.text(t), label)
	}
	p.requireQuiet(t)
}

// change returns when an assignment of a device ended and the next one began, which must be the same time.
func (f *flow) change(t *testing.T, device uuid.UUID, ended, started string) time.Time {
	t.Helper()
	var end, start time.Time
	f.scan(t, []any{&end, &start}, `SELECT e.ended_at, s.started_at FROM assignments e, assignments s
		WHERE e.device_id = $1 AND s.device_id = $1 AND e.label = $2 AND s.label = $3`, device, ended, started)
	require.Equal(t, end, start)
	return end.UTC()
}
